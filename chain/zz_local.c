extern int chain_placeholder; int chain_placeholder;
