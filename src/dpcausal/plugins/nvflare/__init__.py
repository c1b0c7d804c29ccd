"""A transport of NVFlare: it carries texts between the coordinator and the sites, and proves who is at the other end.

NVFlare is a lossy bus here, and not trusted with more: who may ask what is decided by the signed request and by the
site. A site started with `start.start_site` runs one executor of this package and nothing else that a server, an
administrator or a task could name; `strict` says which of NVFlare's settings that takes.
"""
