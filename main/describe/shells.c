/* Completions for bash, zsh and fish. */
#include <ctype.h>
#include <string.h>

#include "describe.h"

static bool has_letter(const struct argp_option *o)
{
    return isascii(o->key) && isprint(o->key);
}

/* A description inside of '..'; `special`: characters that the shell's own rules want escaped. */
static void quoted(FILE *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr(special, *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

/* ---- bash ---- */

static void bash_option(void *arg, const struct argp_option *o)
{
    if (has_letter(o))
        fprintf(arg, " -%c", o->key);
    fprintf(arg, " --%s", o->name);
}

/* The options whose value is a file, or one of some words. */
static void bash_value(void *arg, const struct argp_option *o)
{
    FILE *out = arg;
    const char *words;
    if (!o->arg)
        return;
    fputs("    ", out);
    if (has_letter(o))
        fprintf(out, "-%c|", o->key);
    fprintf(out, "--%s) ", o->name);
    if (describe_value_of(o->arg, &words) == DESCRIBE_FILE)
        fputs("COMPREPLY=($(compgen -f -- \"$cur\"));", out);
    else if (words)
        fprintf(out, "COMPREPLY=($(compgen -W '%s' -- \"$cur\"));", words);
    fputs(" return ;;\n", out);
}

void describe_bash(FILE *out)
{
    fputs("# Completion of txrelay for bash. Made from the table of commands.\n"
          "_txrelay() {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options=\n"
          "  COMPREPLY=()\n"
          "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
          "    COMPREPLY=($(compgen -W '",
          out);
    for (const struct command *const *c = commands; *c; c++)
        fprintf(out, "%s ", (*c)->name);
    fputs("help --help --version' -- \"$cur\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n",
          out);
    for (const struct command *const *c = commands; *c; c++) {
        const char *words;
        fprintf(out, "  %s) case $prev in\n", (*c)->name);
        command_each_option(*c, bash_value, out);
        fputs("    esac\n    options='", out);
        command_each_option(*c, bash_option, out);
        fputs(" -h --help'\n", out);
        if (describe_value_of((*c)->args_doc, &words) == DESCRIBE_FILE)
            fputs("    case $cur in -*) ;; *) COMPREPLY=($(compgen -f -- \"$cur\")); return ;; "
                  "esac\n",
                  out);
        fputs("    ;;\n", out);
    }
    fputs("  esac\n  COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n}\n"
          "complete -F _txrelay txrelay\n",
          out);
}

/* ---- zsh ---- */

static void zsh_option(void *arg, const struct argp_option *o)
{
    FILE *out = arg;
    const char *words;
    enum describe_value value = describe_value_of(o->arg, &words);
    fputs("      ", out);
    if (has_letter(o))
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}", o->key, o->name, o->key, o->arg ? "+" : "",
                o->name, o->arg ? "=" : "");
    else
        fprintf(out, "'--%s%s'", o->name, o->arg ? "=" : "");
    fputs("'[", out);
    quoted(out, o->doc, "[]:");
    fputs("]", out);
    if (o->arg) {
        fputs(":", out);
        quoted(out, o->arg, "[]:");
        fputs(value == DESCRIBE_FILE ? ":_files" : ":", out);
        if (words)
            fprintf(out, "(%s)", words);
    }
    fputs("' \\\n", out);
}

void describe_zsh(FILE *out)
{
    fputs("#compdef txrelay\n# Completion of txrelay for zsh. Made from the table of commands.\n"
          "_txrelay() {\n  local -a commands\n  commands=(\n",
          out);
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(out, "    '%s:", (*c)->name);
        quoted(out, (*c)->what, ":");
        fputs("'\n", out);
    }
    fputs("  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
          "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n",
          out);
    for (const struct command *const *c = commands; *c; c++) {
        const char *words;
        fprintf(out, "    %s) _arguments -s -S \\\n", (*c)->name);
        command_each_option(*c, zsh_option, out);
        fprintf(
            out,
            "      '(-h --help)'{-h,--help}'[print the options]' \\\n      '*:argument:%s' ;;\n",
            describe_value_of((*c)->args_doc, &words) == DESCRIBE_FILE ? "_files" : "");
    }
    fputs("  esac\n}\n_txrelay \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_text(FILE *out, const char *text)
{
    fputs(" -d '", out);
    for (; *text; text++)
        fprintf(out, "%s%c", strchr("'\\", *text) ? "\\" : "", *text);
    fputs("'\n", out);
}

struct fish {
    FILE *out;
    const char *command;
};

static void fish_option(void *arg, const struct argp_option *o)
{
    struct fish *f = arg;
    const char *words;
    enum describe_value value = describe_value_of(o->arg, &words);
    fprintf(f->out, "complete -c txrelay -n '__fish_seen_subcommand_from %s' -l %s", f->command,
            o->name);
    if (has_letter(o))
        fprintf(f->out, " -s %c", o->key);
    if (o->arg)
        fputs(value == DESCRIBE_FILE ? " -r -F" : " -x", f->out);
    if (words)
        fprintf(f->out, " -a '%s'", words);
    fish_text(f->out, o->doc);
}

void describe_fish(FILE *out)
{
    fputs("# Completion of txrelay for fish. Made from the table of commands.\n"
          "complete -c txrelay -f\n",
          out);
    for (const struct command *const *c = commands; *c; c++) {
        struct fish f = {.out = out, .command = (*c)->name};
        fprintf(out, "complete -c txrelay -n __fish_use_subcommand -a %s", (*c)->name);
        fish_text(out, (*c)->what);
        command_each_option(*c, fish_option, &f);
    }
}
