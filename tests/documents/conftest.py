from collections.abc import Iterator
from pathlib import Path

import pytest

from checks import fork_server


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the programs `page` and `dpcausal` of a fork server."""
    folder = tmp_path_factory.mktemp("forks")
    with fork_server.running(folder):
        yield folder
