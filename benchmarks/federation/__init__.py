"""Many sites: real federations of processes on this machine, and what pooling costs and gains."""
