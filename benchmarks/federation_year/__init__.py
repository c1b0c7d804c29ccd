"""A federation of seven sites over a mailbox, for a year of stepped clocks, with all that people and machines do."""
