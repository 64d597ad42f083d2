"""Open an interactive roofline in headless Chromium and use it: no errors, hover shows numbers, toggles hide and show.

    python tests/browser_roofline.py [SCREENSHOT.png]

Needs a `chromium` or `google-chrome` on the path, and says so where there is none; test_plot.py checks what needs no
browser.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lmcalc.interactive import page
from lmcalc.questions.roofline import roofline

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--window-size=1150,1000")  # fmt: skip
# acts as a reader does, and leaves what it saw as the text of an element
ACTS = """
<script>
{
const seen = [], count = () => document.querySelectorAll(".mark").length;
addEventListener("error", event => seen.push("error: " + event.message));
const all = count();
const toggle = key => { const box = document.querySelector(`[data-key="${key}"]`); box.click(); };
toggle("phase:decode"); seen.push("without decode " + count() + " of " + all); toggle("phase:decode");
toggle("machine:h100-sxm"); seen.push("without h100 " + count()); toggle("machine:h100-sxm");
seen.push("again " + count());
const roofs = () => document.querySelectorAll(".roof").length, few = roofs();
toggle("show:links"); seen.push("roofs with links " + (roofs() - few)); toggle("show:links");
const was = document.body.classList.contains("dark");
toggle("dark"); seen.push("dark " + (document.body.classList.contains("dark") !== was)); toggle("dark");
document.querySelector(".mark").dispatchEvent(new MouseEvent("mouseenter"));
seen.push("hover " + document.getElementById("hover").style.display + " " +
document.getElementById("hover").textContent); const note = document.createElement("pre");
note.id = "seen"; note.hidden = true; note.textContent = seen.join("\\n");
document.body.append(note);
}
</script>
"""


def main():
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium or google-chrome on the path: nothing was checked")
    data = roofline(["llama-3.1-8b", "gpt2"], ["h100", "a100"], batch=8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page(data).replace("</body>", ACTS + "</body>"), encoding="utf-8")
        common = [browser, *FLAGS, f"--user-data-dir={folder}/profile"]
        done = subprocess.run([*common, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120)
        seen = re.search(r'<pre id="seen"[^>]*>(.*?)</pre>', done.stdout, re.S)
        if len(sys.argv) > 1:
            subprocess.run(
                [*common, f"--screenshot={Path(sys.argv[1]).resolve()}", path.as_uri()],
                capture_output=True,
                timeout=120,
            )
    text = "the page did not run" if seen is None else seen.group(1)
    print(text)
    expected = (
        "without decode 4 of 8",
        "without h100 4",
        "again 8",
        "roofs with links 2",
        "dark true",
        "hover block llama-3.1-8b on h100-sxm",
    )
    missing = [each for each in expected if each not in text] + ["error"] * ("error:" in text)
    if missing:
        raise SystemExit(f"not as expected: {missing}")


if __name__ == "__main__":
    main()
