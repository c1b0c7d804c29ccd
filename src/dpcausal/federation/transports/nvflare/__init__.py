"""NVFlare as a transport: it carries texts between the coordinator and the sites, and authenticates both ends.

NVFlare is treated as a lossy bus: the signed request and the site decide who may ask what. A site started with
`start.start_site` runs one executor of this package and nothing else that a server, an administrator or a task could
name; `hardening` holds the NVFlare settings that this needs.
"""

from dpcausal.errors import require_library

require_library("nvflare", "carries requests and messages", "federation")
