"""The lane on a real runtime."""
