"""The outcome of `lmcalc validate`: a line a model, and every check that failed."""

from .console import table


def draw(screen, data):
    """Draw checks (schema lmcalc.validate/1)."""
    by_model = {}
    for check in data["checks"]:
        by_model.setdefault(check["model"], []).append(check["ok"])
    table(screen, ["<model", "checks", "failed"],
          [[model, str(len(ok)), str(ok.count(False))] for model, ok in by_model.items()])  # fmt: skip
    for check in data["checks"]:
        if not check["ok"]:
            screen.print(f"failed: {check['model']}: {check['what']}: predicted {check['predicted']}, "
                         f"counted {check['counted']}", markup=False, style="bold red")  # fmt: skip
    screen.print(f"\n{len(data['checks'])} checks, {data['failed']} failed")
