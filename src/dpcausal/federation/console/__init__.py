"""The console: pages for the people of a site or of a coordinator, rendered at the server, without scripts.

It reads the files of one folder and never opens the table. A decision that a person makes here is signed with the
console's own key, and counts as any other signed decision does.
"""
