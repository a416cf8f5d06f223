"""The kinds of hostile inputs. A kind is a function of the breaker and a number of inputs; to add one, write such a
function under `@kind(short, full)`."""

import json
import os
import shutil
import struct
from pathlib import Path

import build
from build import STEERED

ROOT = Path(__file__).resolve().parents[3]
KINDS = {}


def kind(short, full):
    """Registers a kind with how many inputs it makes in the short and in the full form."""
    def register(function):
        KINDS[function.__name__] = (function, short, full)
        return function
    return register


def batches(count, size):
    while count > 0:
        yield min(count, size)
        count -= size


def texts(b, place):
    """Texts that try to get out of their place."""
    return ["", " ", STEERED, "A" * 70_000, f"{place.private}/secret.txt", "../" * 9 + "etc/passwd",
            "../private/secret.txt", "../../private/secret.txt", b.elsewhere.url, "PLANTED_SECRET", "\u0000", "\ud83d\ude00",
            "/proc/self/environ", "/dev/zero", "=1+cmd|' /C x'!A0", "<script>alert(1)</script>", "{{ 7*7 }}", "NaN", "-1",
            "$(touch started-a-program)", "if\n", "\u212a", "file:///etc/passwd"]


NUMBERS = [-1, 0, 1, 2, 255, 65_536, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, -2**63, 1e308, -1e308, 1e-308,
           0.5, -0.0, 99.999, 1e18]
OTHERS = [None, True, False, [], {}, [[]], {"a": 1}, [1, 2], [0, 0, 0, 0], [[1, 2, 3, 4]], [-1, -1, 1e308, 1e308]]


def value(b, rng, place):
    return rng.choice(rng.choice([texts(b, place), NUMBERS, OTHERS]))


def dump(data):
    # Half of a pair cannot be written otherwise.
    return json.dumps(data).encode("utf-8", "surrogatepass")


# --- pictures ---------------------------------------------------------------------------------------------------

def fixtures():
    folder = ROOT / "tools/tests/pictures"
    return [(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file()]


def bombs():
    """Small files that would take much memory or time."""
    jpeg = dict(fixtures())["progressive.jpg"]
    plain = dict(fixtures())["plain.jpg"]
    yield "wide.png", build.png(1 << 27, 1, 1, 0, rows=0)
    yield "tall.png", build.png(1, 1 << 27, 1, 0, rows=0)
    yield "huge.png", build.png(2**31 - 1, 2**31 - 1, 16, 6, rows=0)
    yield "square.png", build.png(30_000, 30_000, 16, 6, rows=0)
    yield "interlaced.png", build.png(65_535, 2_000, 8, 2, rows=0, interlace=1)
    yield "profile.png", build.png(8, 8, extra=build.chunk(b"iCCP", b"x\0\0" + build.zlib.compress(bytes(40 << 20), 9)))
    yield "text.png", build.png(8, 8, extra=build.chunk(b"zTXt", b"x\0\0" + build.zlib.compress(bytes(40 << 20), 9)))
    yield "strips.tif", build.grey_tiff(60_000, 2_000, b"\0" * 64, packing=32773)
    yield "tiles.tif", build.grey_tiff(64, 64, b"\0" * 64, more=[(322, 4, 1, 65_520), (323, 4, 1, 65_520),
                                                              (324, 4, 1, 200), (325, 4, 1, 64)])
    yield "many.tif", build.grey_tiff(64, 64, b"\0" * 64, rows=1, more=[(700, 1, 0x7FFFFFFF, 8)])
    yield "deep.tif", build.grey_tiff(20_000, 5_000, b"\0" * 64, bits=32, more=[(339, 3, 1, 3)])
    yield "frame.gif", build.gif(1, 1, 65_535, 65_535)
    yield "canvas.gif", build.gif(65_535, 65_535, 1, 1)
    yield "frames.gif", build.gif(8, 8, 8, 8, 50_000)
    yield "size.bmp", build.bmp(2**31 - 1, 2**31 - 1)
    yield "upside.bmp", build.bmp(60_000, -2_000)
    yield "packed.bmp", build.bmp(60_000, 2_000, 8, 1, b"\0\1" * 32, 256)
    yield "frame.webp", build.webp(build.webp_canvas(10, 10), build.vp8(16_383, 16_383))
    yield "canvas.webp", build.webp(build.webp_canvas(1 << 24, 1 << 24), build.vp8(10, 10))
    yield "animated.webp", build.webp(build.webp_canvas(10, 10, 2), (b"ANIM", bytes(6)), (b"ANMF", bytes(
        [0, 0, 0, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 0, 0, 0]) + b"VP8 " + struct.pack("<I", 74) + build.vp8(16_383, 16_383)[1]))
    yield "size.jpg", build.jpeg_as(plain, 65_500, 2_000)
    yield "progressive.jpg", build.jpeg_as(jpeg, 65_500, 2_000)
    yield "scans.jpg", build.jpeg_scans(jpeg, 500)


def mangled(rng, data):
    """The same bytes with some harm done."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0: data[at] = rng.randrange(256)
            case 1: data[at] ^= 1 << rng.randrange(8)
            case 2: data[at:at + 4] = struct.pack(rng.choice("<>") + "I", rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 65_535]))
            case 3: del data[at:at + rng.randrange(1, 40)]
            case 4: data[at:at] = data[at:at + rng.randrange(1, 200)]
            case 5: del data[at:]
        if not data:
            return b"\0"
    return bytes(data)


def data_set(place, name, pictures, rows=None):
    """A data set with these edited pictures: (file name, bytes)."""
    folder = place.sent / name
    folder.mkdir(parents=True)
    (folder / "source.png").write_bytes(build.drawn(48, 32, (8, 8, 10, (200, 30, 30))))
    lines = []
    for number, (file, data) in enumerate(pictures):
        (folder / file).write_bytes(data)
        lines.append({"id": f"c{number}", "source": "source.png", "instruction": f"make it number {number}",
                      "type": "Change Color", "boxes": [[8, 8, 18, 18]], "edits": {"somebody": file}})
    (folder / "cases.jsonl").write_bytes(b"".join(dump(line) + b"\n" for line in rows or lines))
    return folder


@kind(400, 6000)
def pictures(b, count):
    """Damaged pictures and bombs, decoded by the hundred."""
    rng, known = b.rng("pictures"), fixtures()
    first = True
    for size in batches(count, 250):
        with b.place("pictures") as place:
            made = list(bombs()) if first else []
            while len(made) < size:
                name, data = rng.choice(known)
                made.append((f"{len(made)}-{name}", mangled(rng, data)))
            folder = data_set(place, "set", made)
            b.run("pictures", place, ["dataset", "check", folder, "--json"], megabytes=1600, cpu=120)
            if first:
                for name, _ in made[:23]:
                    b.run("pictures", place, ["tool", "zoom_in", folder / name, "--args", '{"bbox":[0,0,4,4]}'],
                          megabytes=1400)
            run = b.run("pictures", place, ["eval", folder, "--allow-partial", "--run", "run", "--limit", "60", "--mode",
                                            "plain", "--quiet", "--keep-going"], megabytes=1600, cpu=120)
            check_lines(b, "pictures", place.cwd / "run", run)
            first = False
            b.count("pictures", size)


def check_lines(b, kind, run, ran):
    """No number stands where there is no verdict."""
    path = run / "results.jsonl"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []:
        line = json.loads(line)
        if line.get("outcome") != "verdict":
            b.expect(kind, line.get("case"), line.get("score") is None and line.get("label") is None,
                     f"a number for what has {line.get('outcome')}: {line.get('score')}")
        else:
            b.expect(kind, line.get("case"), line.get("label"), "a verdict without a label")


# --- traces -----------------------------------------------------------------------------------------------------

def golden():
    """The golden traces: name, manifest, events."""
    found = []
    for folder in sorted((ROOT / "traces/examples/run/judgements").iterdir()):
        manifest = json.loads((folder / "manifest.json").read_text())
        lines = (folder / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        found.append((folder.name, manifest, events))
    return found


def run_folder(folder):
    """A run with the blobs of the golden traces and no judgements."""
    (folder / "judgements").mkdir(parents=True)
    shutil.copytree(ROOT / "traces/examples/run/blobs", folder / "blobs")
    return folder


def write_bundle(folder, manifest, events, sealed=True):
    folder.mkdir(parents=True)
    texts = build.bundle(manifest, events, sealed)
    for name, text in zip(("manifest.json", "events.jsonl"), texts):
        (folder / name).write_bytes(text)


@kind(600, 9000)
def traces(b, count):
    """Golden traces with something else in one field, sealed as if they had been written so."""
    rng, known = b.rng("traces"), golden()
    for size in batches(count, 150):
        with b.place("traces") as place:
            run = run_folder(place.sent / "run")
            for number in range(size):
                _, manifest, events = rng.choice(known)
                for _ in range(rng.choice([1, 1, 1, 3])):
                    of_manifest = rng.random() < 0.5
                    part = manifest if of_manifest else events
                    path = rng.choice(list(build.places(part))[1:])
                    if rng.random() < 0.1:
                        part = build.without(part, path)
                    else:
                        part = build.replaced(part, path, value(b, rng, place))
                    if of_manifest:
                        manifest = part
                    else:
                        events = part
                    if not all(isinstance(event, dict) and "event" in event for event in events):
                        events = [event if isinstance(event, dict) and "event" in event else {"event": event}
                                  for event in events]
                write_bundle(run / "judgements" / f"t{number:03}", manifest, events, rng.random() < 0.9)
            command = lambda *args, **more: b.run("traces", place, args, **more)
            command("view", run, "--out", "pages")
            command("replay", run, "--tools", "recorded", "--json")
            command("replay", run, terminal=True, cpu=180, seconds=300)
            command("trace", "show", run, terminal=True)
            command("trace", "export", run)
            command("report", run, terminal=True)
            command("trace", "pack", run, "-o", "run.zip")
            command("run", "rebuild", run)
            command("run", "status", run, terminal=True)
            command("eval", "--from-traces", run, "--run", "again", "--mode", "plain", "--quiet", "--allow-partial")
            if rng.random() < 0.5:
                one = run / "judgements" / f"t{rng.randrange(size):03}"
                command("replay", one, "--from-turn", "2", "--trace", "fork")
                command("replay", one, "--from-turn", "1", "--trace", "fork", "--despite-flaws")
            b.count("traces", size)


# --- links and special files ------------------------------------------------------------------------------------

@kind(60, 600)
def links(b, count):
    """Links, pipes, devices and folders in the place of files."""
    rng, known = b.rng("links"), golden()
    for _ in range(count):
        with b.place("links") as place:
            run = run_folder(place.sent / "run")
            for name, manifest, events in rng.sample(known, 3):
                write_bundle(run / "judgements" / name, manifest, events)
            (run / "results.jsonl").write_text('{"case":"a","criterion":"if","label":"Wrong Action"}\n')
            shutil.copy(ROOT / "prompts/dlebench/v1/pack.toml", place.sent / "pack.toml")
            pack = shutil.copytree(ROOT / "prompts/dlebench/v1", place.sent / "pack")
            folder = data_set(place, "set", [("a.png", build.drawn(48, 32, (8, 8, 10, (30, 30, 200))))])
            # The user's own: what a user names may be a pipe.
            labels = place.cwd / "labels.jsonl"
            labels.write_text('{"case":"a","editor":"e","criterion":"if","annotator":"x","label":"Wrong Action"}\n')
            files = [path for part in (run, pack, folder) for path in part.rglob("*")]
            for victim in rng.sample(files, rng.choice([1, 1, 2, 5])):
                # Never through a link of our own making.
                if not victim.exists() or any(path.is_symlink() for path in (victim, *victim.parents)):
                    continue
                shutil.rmtree(victim) if victim.is_dir() else victim.unlink()
                target = rng.choice([place.private / "secret.txt", place.private, "/dev/zero", "/proc/self/environ",
                                     "../../../private/manifest.json", "nowhere", ".", "/"])
                match rng.randrange(4):
                    case 0: os.mkfifo(victim)
                    case 1: victim.mkdir()
                    case _: victim.symlink_to(target)
            offline = ["--mode", "plain", "--quiet", "--allow-partial", "--keep-going"]
            commands = [["view", run, "--out", "pages"], ["replay", run, "--tools", "recorded"], ["trace", "show", run],
                        ["trace", "pack", run, "-o", "run.zip"], ["trace", "export", run], ["report", run],
                        ["run", "rebuild", run], ["run", "status", run], ["run", "merge", run, "--into", "merged"],
                        ["compare", run, run], ["agree", run, "--labels", labels],
                        ["prompts", "lint", pack], ["dataset", "check", folder], ["dataset", "stats", folder],
                        ["eval", folder, "--run", run, "--mix", *offline],
                        ["eval", folder, "--run", "new", "--prompts", pack, *offline],
                        ["eval", "--from-traces", run, "--run", "again", *offline]]
            for args in rng.sample(commands, 6):
                b.run("links", place, args, seconds=60)
            b.count("links")


# --- archives ---------------------------------------------------------------------------------------------------

@kind(150, 1500)
def archives(b, count):
    """Zips whose names, lengths and places lie, and damaged ones."""
    rng = b.rng("archives")
    manifest, events = b"{}", b""
    names = ["manifest.json", "events.jsonl", "results.jsonl", "run.json", "judgements/a/manifest.json", "../x", "/etc/x",
             "judgements/../../x", "blobs/" + "0" * 64 + ".png", "blobs/../../x.png", "C:\\x", "..\\..\\x", "manifest.json/",
             "judgements/" + STEERED + "/manifest.json", "a" * 300, "", ".", "manifest.json\0.png", "MANIFEST.JSON",
             "blobs", "judgements/", "\u202emanifest.json"]
    with b.place("archives") as place:
        for number in range(count):
            entries = []
            for _ in range(rng.choice([1, 2, 3, 8])):
                said = {}
                if rng.random() < 0.3:
                    said = rng.choice([{"local": b"events.jsonl"}, {"size": 2**32 - 1}, {"packed": 2**31}, {"size": 0},
                                       {"method": 99}, {"method": 0}, {"mode": 0o120777}, {"mode": 0o10644}, {"at": 0},
                                       {"at": 2**32 - 1}, {"crc": 1}, {"flags": 1}, {"flags": 8}])
                data = rng.choice([manifest, events, b"/etc/passwd", bytes(1 << 20), STEERED.encode()])
                entries.append((rng.choice(names).encode("utf-8", "surrogatepass"), data, said))
            zipped = build.archive(entries, rng.choice([b"", b"", b"before"]), rng.choice([b"", b"PK\5\6" + bytes(18)]))
            if rng.random() < 0.3:
                zipped = mangled(rng, zipped)
            path = place.sent / f"{number}.zip"
            path.write_bytes(zipped)
            out = place.cwd / f"out{number}"
            ran = b.run("archives", place, ["trace", "unpack", path, "--out", out.name], terminal=rng.random() < 0.2,
                        what=f"{number}.zip")
            listed = [entry[0] for entry in entries]
            if ran.code == 0:
                b.expect("archives", path.name, len(set(listed)) == len(listed), "two files of one name are unpacked")
            shutil.rmtree(out, ignore_errors=True)
            path.unlink()
            b.count("archives")


# --- packs ------------------------------------------------------------------------------------------------------

def template_bombs():
    yield "{{ " + "1+" * 6000 + "1 }}"
    yield "{{ " + "not " * 6000 + "true }}"
    yield "{{ a" + ".b" * 6000 + " }}"
    yield "{{ a" + "[0]" * 6000 + " }}"
    yield "{{ " + "(" * 6000 + "1" + ")" * 6000 + " }}"
    yield "{{ " + "[" * 6000 + "]" * 6000 + " }}"
    yield "{% if a %}" * 3000 + "{% endif %}" * 3000
    yield "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}"
    yield "{{ 'x' * 1000000000 }}"
    yield "{{ range(1000000000)|list }}"
    yield "{% include 'pack.toml' %}{% include '../../private/secret.txt' %}{% include '/etc/passwd' %}"
    yield "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"
    yield "{{ " + "a|upper" + "|upper" * 6000 + " }}"
    yield STEERED


@kind(60, 500)
def packs(b, count):
    """Prompt packs whose templates and rules are bombs or broken."""
    rng, bombs = b.rng("packs"), list(template_bombs())
    source = ROOT / "prompts/dlebench/v1"
    with b.place("packs") as place:
        folder = data_set(place, "set", [("a.png", build.drawn(48, 32, (8, 8, 10, (30, 30, 200))))])
        for number in range(count):
            pack = shutil.copytree(source, place.sent / f"pack{number}")
            victim = rng.choice(sorted(pack.iterdir()))
            if number < len(bombs) or rng.random() < 0.3:
                victim = rng.choice(sorted(pack.glob("*.j2")))
                old = victim.read_text()
                at = rng.randrange(len(old))
                bomb = bombs[number] if number < len(bombs) else rng.choice(bombs)
                victim.write_text(old[:at] + bomb + old[at:] if rng.random() < 0.5 else bomb)
            else:
                victim.write_bytes(mangled(rng, victim.read_bytes()))
            b.run("packs", place, ["prompts", "lint", pack], terminal=True, what=victim.name)
            b.run("packs", place, ["eval", folder, "--prompts", pack, "--run", f"run{number}", "--mode", "plain", "--quiet"],
                  what=victim.name)
            b.count("packs")


# --- data sets --------------------------------------------------------------------------------------------------

@kind(800, 6000)
def data_sets(b, count):
    """Rows of data sets with something else in a field."""
    rng = b.rng("data_sets")
    for size in batches(count, 400):
        with b.place("data_sets") as place:
            rows = []
            for number in range(size):
                row = {"id": f"c{number}", "source": "source.png", "instruction": "edit it", "type": "Change Color",
                       "target": "it", "boxes": [[1, 1, 9, 9]], "edits": {"somebody": "a.png"}, "reference": "source.png"}
                row = build.replaced(row, rng.choice(list(build.places(row))[1:]), value(b, rng, place))
                if rng.random() < 0.1:
                    row[rng.choice(texts(b, place))[:1000]] = value(b, rng, place)
                rows.append(row)
            picture = build.drawn(48, 32, (8, 8, 10, (30, 30, 200)))
            folder = data_set(place, "set", [("a.png", picture)], rows)
            table = folder / "table.csv"
            with open(table, "wb") as out:
                out.write(b"id,source,instruction,edited,boxes\n")
                for row in rows:
                    cells = [row.get(name, "") for name in ("id", "source", "instruction", "edits", "boxes")]
                    out.write(b",".join(b'"' + dump(cell).replace(b'"', b'""') + b'"' for cell in cells) + b"\n")
            for path in (folder / "cases.jsonl", table):
                b.run("data_sets", place, ["dataset", "check", path], terminal=rng.random() < 0.5)
                b.run("data_sets", place, ["dataset", "stats", path, "--out", "stats.html"])
            ran = b.run("data_sets", place, ["eval", folder / "cases.jsonl", "--allow-partial", "--run", "run", "--mode",
                                             "plain", "--quiet", "--keep-going", "--limit", "40"], cpu=120)
            check_lines(b, "data_sets", place.cwd / "run", ran)
            b.count("data_sets", size)


# --- results ----------------------------------------------------------------------------------------------------

@kind(300, 2500)
def results(b, count):
    """Lines of results with something else in a field."""
    rng = b.rng("results")
    base = {"case": "c", "editor": "e", "type": "Change Color", "criterion": "if", "instruction": "x", "mode": "plain",
            "repeat": 0, "model": "m", "outcome": "verdict", "label": "Wrong Action", "score": 33.333333333333336,
            "reason": None, "turns": 1, "usage": {"prompt_tokens": 10, "cached_tokens": None, "completion_tokens": 2},
            "cost": 0.1, "paid": 0.1, "cached": 0, "seconds": 1.0, "at": 1, "trace": "judgements/a"}
    for size in batches(count, 100):
        with b.place("results") as place:
            run = run_folder(place.sent / "run")
            lines = []
            for number in range(size):
                line = base | {"case": f"c{number}"}
                lines.append(build.replaced(line, rng.choice(list(build.places(line))[1:]), value(b, rng, place)))
            (run / "results.jsonl").write_bytes(b"".join(dump(line) + b"\n" for line in lines))
            b.run("results", place, ["view", run, "--out", "pages"])
            b.run("results", place, ["replay", run], terminal=True)
            b.run("results", place, ["run", "rebuild", shutil.copytree(run, place.sent / "copy")])
            for line in rng.sample(lines, min(size, 12)):
                one = place.sent / "one.jsonl"
                one.write_bytes(dump(base) + b"\n" + dump(line) + b"\n")
                way = rng.choice(["md", "csv", "json", "latex", "html"])
                b.run("results", place, ["report", one, "--format", way], terminal=rng.random() < 0.3)
                b.run("results", place, ["compare", one, one], terminal=rng.random() < 0.3)
                b.run("results", place, ["agree", one, "--labels", one], terminal=rng.random() < 0.3)
            b.count("results", size)
