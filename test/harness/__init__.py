"""Whole-system test harness: a private Postgres, a chain, relays; nothing is left behind."""
