"""The wheel as a stranger gets it: built, installed in an empty environment, used far from the checkout.

    python -m tests.package          # what `make package` runs; two minutes, most of them for installing

A file of 300 customers with ids as text, names in several scripts and ISO dates becomes recommendations; help, a list,
a report and an export are asked for. Whatever the wheel forgot to bring fails here, and nowhere in the tests.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = ("Tee", "Kaffee", "Öl", "Żurek", "茶", "чай", "قهوة", "Crème brûlée")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        confed = installed(place)
        shop = place / "shop"
        shop.mkdir()
        write_orders(shop / "orders.csv")
        use(confed, shop)


def installed(place: Path) -> Path:
    """The command, in an environment that holds the wheel and what it needs."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "wheel", "--no-deps", "--wheel-dir", str(place / "dist"), str(ROOT)], place)
    venv.create(place / "env", with_pip=True)
    binaries = place / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    (wheel,) = (place / "dist").glob("*.whl")
    run([str(binaries / "python"), *pip[1:], "install", str(wheel)], place)
    return binaries / "confed"


def write_orders(path: Path) -> None:
    """Tastes by the customer's number, so that there is something to learn."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["Customer", "product", "purchased at"])
        for customer in range(300):
            for order in range(5 + customer % 20):
                product = (customer % 6) * 40 + (customer * 7 + order * order) % 40
                name = f"{NAMES[product % len(NAMES)]} {product}"
                out.writerow([f"K-{customer:04}", name, f"2024-{1 + order % 12:02}-{1 + customer % 28:02}T10:00:00"])


def use(confed: Path, shop: Path) -> None:
    run([str(confed), "--help"], shop)
    assert "cofedrec" in run([str(confed), "methods"], shop)
    began = time.monotonic()
    answer = json.loads(run([str(confed), "recommend", "orders.csv", "--user", "K-0007", "--json"], shop))
    took = time.monotonic() - began
    assert len(answer["items"]) == 10, answer
    run([str(confed), "recommend", "--latest", "--all", "--out", "everybody.csv"], shop)
    assert (shop / "everybody.csv").read_text("utf-8").count("\n") > 2_900
    run([str(confed), "report", answer["run"]], shop)
    assert "orders.csv" in (Path(shop) / answer["run"] / "report.html").read_text("utf-8")
    print(f"the wheel works outside the checkout; recommendations of 300 customers took {took:.0f} s")


def run(command: list[str], where: Path) -> str:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
