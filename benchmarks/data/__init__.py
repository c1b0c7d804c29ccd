"""The data sets of the papers: where they come from, those that are shipped, and loaders for those that are not."""
