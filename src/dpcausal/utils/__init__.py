"""What every package uses and none owns: checks of arguments, text, arrays, chains of hashes."""
