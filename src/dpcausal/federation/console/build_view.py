"""The page on which a study is put together, with a plan that follows each change."""

from pathlib import Path

from flask import Response, render_template, request

from dpcausal.errors import DpcausalError
from dpcausal.federation.console.builder import METHODS, Draft, columns, error_words, outcomes, treatments
from dpcausal.federation.console.coordinator_folder import CoordinatorFolder
from dpcausal.federation.console.parts import text_file
from dpcausal.federation.console.security import allow_style_attributes
from dpcausal.report.figures.inline import effect_figure


def build_page(folder: Path) -> Response | str:
    """Return the form, and after it was sent what to expect of its study; or the study as a file."""
    bases = CoordinatorFolder(folder).bases
    chosen = request.values.get("base", "")
    base = bases.get(chosen) or next(iter(bases.values()), None)
    if base is None:
        return render_template("build.html", title="Plan a study", bases=[])
    draft, study, report, problem = Draft.of(base), None, None, ""
    if request.method == "POST":
        draft = Draft.read(request.form, request.form.getlist("covariates"))
        try:
            study = draft.study(base)
            if request.form.get("action") == "download":
                return text_file(study.text, "study.toml", "application/toml")
            report = draft.report(study)
        except DpcausalError as error:
            problem = error_words(error)
    allow_style_attributes()
    return render_template(
        "build.html",
        title="Plan a study",
        bases=[(digest, f"{each.name} ({digest[:12]})") for digest, each in bases.items()],
        base=base.digest,
        draft=draft,
        covariates=[each.name for each in columns(base)],
        outcomes=[(name, name) for name in outcomes(base)],
        treatments=[(name, name) for name in treatments(base)],
        methods=[("", "as in the study above"), *((name, name.replace("_", " ")) for name in METHODS)],
        study=study,
        report=report,
        figures=effect_figure(report) if report else (),
        problem=problem,
    )
