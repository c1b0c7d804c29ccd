"""An OpenID Connect provider on this machine, with two people: Canaille, run by the Python that has it installed.

`python console_provider.py PORT CONSOLE` prints a line when it listens; CONSOLE is the address of the console.
"""

import sys
from datetime import UTC, datetime

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

CLIENT, SECRET = "console", "a-secret-of-this-check"
PEOPLE = {"adams": "Adams", "brown": "Brown"}
PASSWORD = "words-of-this-check-only"  # noqa: S105 (of this check only)


def main() -> None:
    """Serve the provider until stopped."""
    port, console = int(sys.argv[1]), sys.argv[2]
    config = {
        "SECRET_KEY": "of-this-check-only",
        "SERVER_NAME": f"127.0.0.1:{port}",
        "PREFERRED_URL_SCHEME": "http",
        "CANAILLE": {"JAVASCRIPT": False, "HTMX": False, "DATABASE": "memory"},
        "CANAILLE_OIDC": {"ACTIVE_JWKS": [RSAKey.generate_key(2048, auto_kid=True).as_dict(private=True)]},
    }
    app = create_app(config)
    with app.app_context():
        for login, name in PEOPLE.items():
            email = f"{login}@hospital.example"
            person = models.User(
                user_name=login, formatted_name=f"Dr. {name}", family_name=name, emails=[email], password=PASSWORD
            )
            Backend.instance.save(person)
        client = models.Client(
            client_id=CLIENT,
            client_secret=SECRET,
            client_name="Console of north",
            client_uri=console,
            client_id_issued_at=datetime.now(UTC),
            redirect_uris=[f"{console}/login/callback"],
            grant_types=["authorization_code"],
            response_types=["code"],
            scope=["openid"],
            token_endpoint_auth_method="client_secret_basic",  # noqa: S106 (a method)
        )
        Backend.instance.save(client)
        client.audience = [client]
        Backend.instance.save(client)
    server = make_server("127.0.0.1", port, app, threaded=False)
    print("listening", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
