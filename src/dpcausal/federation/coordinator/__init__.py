"""The coordinator: it asks sites, checks their answers and adds them up. Nothing here can see a table."""
