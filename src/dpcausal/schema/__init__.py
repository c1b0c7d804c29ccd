"""What is public about a table: its columns, its treatment, its outcome, and how cells are read."""
