"""Published ways to make private intervals beside this library's, on the same tables with the same guarantee."""
