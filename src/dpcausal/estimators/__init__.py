"""Public code that turns releases into effects. Nothing here can see a table."""
