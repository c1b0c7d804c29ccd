"""A study: what is asked of a table, written down before it is answered."""
