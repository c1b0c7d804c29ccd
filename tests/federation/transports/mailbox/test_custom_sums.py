"""Three sites, each a process of its own, answer an estimator of which they know only the study's text."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.policy import KEY
from dpcausal.federation.transports.mailbox.transport import MailboxTransport, admit_joined
from tests.estimators.test_formula_estimator import SCHEMA, SLOPE, cells
from tests.support.mailbox_server import MailboxServer
from tests.support.site_folders import approve_study, make_site_folder

SITES = ("north", "south", "west")
POLICY = {"columns": ["score", "dose"], "coordinates": 6, "epsilon": 1.0}


@pytest.mark.slow
@pytest.mark.xdist_group("mailbox")
def test_sites_answer_sums_that_only_the_study_describes(tmp_path: Path) -> None:
    study = dpc.Study(
        name="doses", question="?", requester="anna", schema=SCHEMA, estimator=SLOPE, epsilon=1.0, pooling="sums"
    )
    tables = {name: cells(1_500, seed) for seed, name in enumerate(SITES)}
    with MailboxServer(tmp_path / "workspace", workers=1) as server:
        for name, columns in tables.items():
            asked = {"anna": server.anna.public}
            make_site_folder(tmp_path / name, name, pa.table(columns), SCHEMA, asked, custom_sums=POLICY)
            approve_study(tmp_path / name, study)
            server.join(Key.read(name, tmp_path / name / KEY), tmp_path / name / "mailbox")
        admit_joined(server.client, server.folder / "mailbox" / "invitations", server.workspace)
        roster, transport = server.workspace.roster, MailboxTransport(server.client)
        store = server.folder / "doses.db"

        def coordinator(timeout: float) -> dpc.Coordinator:
            return dpc.Coordinator(
                study.to_toml(), roster, server.anna, transport, store=store, timeout=timeout, attempts=1
            )

        with pytest.raises(RefusedError):  # it has asked, and nobody has answered
            coordinator(0.5).run()
        for name in SITES:
            command = [sys.executable, "-P", "-m", "dpcausal", "site", "poll", name, "--once"]
            done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)  # noqa: S603
            assert "outcome=answered" in done.stdout + done.stderr
        effect = coordinator(60).run()
    dose, score = (np.concatenate([columns[name] for columns in tables.values()]) for name in ("dose", "score"))
    assert [share.status for share in effect.sites] == ["answered"] * 3
    assert effect.estimate == pytest.approx(np.polyfit(dose, score, 1)[0], abs=8 * effect.privacy_sd)
    assert effect.interval()
