"""Parquet files made by pyarrow, read by deeplook, and the other way round."""
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

PROGRAM = sys.argv[1]
WORK = tempfile.TemporaryDirectory()
os.chdir(WORK.name)
ENVIRONMENT = {**os.environ, "DEEPLOOK_CACHE": os.path.join(WORK.name, "cache"), "DEEPLOOK_OFFLINE": "1"}
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
# Above this a process ends by itself: nothing here needs a part of it.
MOST_MEMORY = 3 << 30


def png(shade, size=24):
    file = io.BytesIO()
    Image.new("RGB", (size, size), (shade % 256, shade // 256 % 256, 7)).save(file, "PNG")
    return file.getvalue()


def held(shade):
    return {"bytes": png(shade), "path": f"{shade}.png"}


def run(*args, code=0):
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

    done = subprocess.run([PROGRAM, *args], env=ENVIRONMENT, capture_output=True, text=True, preexec_fn=bound)
    told = done.stdout + done.stderr
    assert "panicked" not in told, told
    if code is not None:
        assert done.returncode == code, (args, done.returncode, told[-2000:])
    return done


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def convert(source, name, preset=None, code=0, more=()):
    out = f"out-{name}"
    run("dataset", "convert", source, "--out", out, *(["--preset", preset] if preset else []), *more, code=code)
    return out


def bytes_of(out, name):
    with open(os.path.join(out, name), "rb") as file:
        return file.read()


def presets():
    """The schema of each preset: its records come back, with their pictures."""
    n = 5
    text, number = pa.string(), pa.int64()
    tables = {
        "editreward-bench": {
            "id": (text, [f"r{i}" for i in range(n)]),
            "dataset": (text, ["2pair"] * n),
            "instruction": (text, [f"do {i}" for i in range(n)]),
            "source_image": (PICTURE, [held(i) for i in range(n)]),
            "candidate_1": (PICTURE, [held(20 + i) for i in range(n)]),
            "candidate_2": (PICTURE, [held(40 + i) for i in range(n)]),
            "ranking": (text, ["A>B", "B>A", "A=B", "A=B=Bad", None]),
            "comparison_type": (text, ["x"] * n),
            "model_1": (text, ["one"] * n),
            "model_2": (text, ["two"] * n),
        },
        "editscore-bench": {
            "key": (pa.list_(text), [[f"a{i // 2}", "b"] for i in range(n)]),
            "instruction": (text, [f"do {i // 2}" for i in range(n)]),
            "input_image": (PICTURE, [held(i // 2) for i in range(n)]),
            "output_images": (pa.list_(PICTURE), [[held(20 + i // 2), held(40 + i // 2)] for i in range(n)]),
            "task_type": (text, ["x"] * n),
            "dimension": (text, ["overall", "consistency", "overall", "consistency", "overall"]),
        },
        "editreward-compass": {
            "source_image": (PICTURE, [held(i) for i in range(n)]),
            "prompt": (text, [f"do {i}" for i in range(n)]),
            "winner": (PICTURE, [held(20 + i) for i in range(n)]),
            "loser": (PICTURE, [held(40 + i) for i in range(n)]),
            "label": (text, ["preference", "tie", "preference", "tie", "preference"]),
            "dimension": (text, ["IA", "VC", "VQ", "IA", "VC"]),
        },
        "gedit-bench": {
            "key": (text, [f"k{i}" for i in range(n)]),
            "instruction": (text, [f"do {i}" for i in range(n)]),
            "instruction_language": (text, ["en", "cn", "en", "cn", "en"]),
            "task_type": (text, ["background_change"] * n),
            "input_image": (PICTURE, [held(i) for i in range(n)]),
            "Intersection_exist": (pa.bool_(), [True, False, None, True, True]),
        },
        "magicbrush": {
            "img_id": (text, [f"{i}" for i in range(n)]),
            "turn_index": (number, [1] * n),
            "source_img": (PICTURE, [held(i) for i in range(n)]),
            "mask_img": (PICTURE, [held(60 + i) for i in range(n)]),
            "instruction": (text, [f"do {i}" for i in range(n)]),
            "target_img": (PICTURE, [held(80 + i) for i in range(n)]),
        },
        "humanedit": {
            "IMAGE_ID": (text, [f"h{i}" for i in range(n)]),
            "INPUT_IMG": (PICTURE, [held(i) for i in range(n)]),
            "MASK_IMG": (PICTURE, [held(60 + i) for i in range(n)]),
            "OUTPUT_IMG": (PICTURE, [held(20 + i) for i in range(n)]),
            "EDITING_INSTRUCTION": (text, [f"do {i}" for i in range(n)]),
        },
        "emu-edit": {
            "idx": (number, list(range(n))),
            "task": (text, ["remove"] * n),
            "instruction": (text, [f"do {i}" for i in range(n)]),
            "image": (PICTURE, [held(i) for i in range(n)]),
            "input_caption": (text, ["a", None, "c", "d", "e"]),
            "output_caption": (text, ["a"] * n),
        },
    }
    for name, columns in tables.items():
        table = pa.table({field: pa.array(values, kind) for field, (kind, values) in columns.items()})
        for packed in ["snappy", "zstd", "none"]:
            for version in ["1.0", "2.0"]:
                folder = f"{name}-{packed}-{version}"
                os.makedirs(f"{folder}/data")
                # Two shards, and small groups of rows.
                for shard, (start, length) in enumerate([(0, 2), (2, 3)]):
                    file = f"{folder}/data/part-{shard}.parquet"
                    pq.write_table(table.slice(start, length), file, compression=packed, row_group_size=2,
                                   data_page_version=version)
                # Recognised by itself.
                out = convert(folder, folder)
                cases = lines(f"{out}/cases.jsonl")
                assert len(cases) == (3 if name == "editscore-bench" else n), (name, len(cases))
                for i, case in enumerate(cases):
                    assert case["instruction"] == f"do {i}", case
                    assert bytes_of(out, case["source"]) == png(i), case
                    for editor, path in case.get("edits", {}).items():
                        expected = 40 + i if editor in ["two", "second", "loser"] else 20 + i
                        assert bytes_of(out, path) == png(expected), case
                    if "mask" in case.get("pictures", {}):
                        assert bytes_of(out, case["pictures"]["mask"]) == png(60 + i)
                if name == "editreward-bench":
                    votes = [vote["vote"] for vote in lines(f"{out}/votes.jsonl")]
                    assert votes == ["a", "b", "tie", "both_bad"], votes
                if name == "editscore-bench":
                    assert len(lines(f"{out}/votes.jsonl")) == n
    # Without bytes the paths count, below a root.
    os.makedirs("store/deep")
    with open("store/deep/a.png", "wb") as file:
        file.write(png(3))
    row = {"key": "k", "instruction": "do", "instruction_language": "en", "task_type": "t",
           "input_image": {"bytes": None, "path": "deep/a.png"}}
    schema = pa.schema([("key", text), ("instruction", text), ("instruction_language", text), ("task_type", text),
                        ("input_image", PICTURE)])
    pq.write_table(pa.Table.from_pylist([row], schema), "paths.parquet")
    out = convert("paths.parquet", "paths", more=["--root", "store"])
    assert bytes_of(out, lines(f"{out}/cases.jsonl")[0]["source"]) == png(3)


def generic():
    """PICABench's columns as they stand on the hub: nested questions with boxes, as facts of a case."""
    box = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("width", pa.float64()), ("height", pa.float64())])
    question = pa.struct([("question", pa.string()), ("answer", pa.string()), ("box", box),
                          ("_step8_sanity", pa.struct([("confidence", pa.float32()), ("error", pa.string())]))])
    schema = pa.schema([("physics_category", pa.string()), ("physics_law", pa.string()), ("edit_operation", pa.string()),
                        ("superficial_prompt", pa.string()), ("image_path", pa.string()), ("input_image", PICTURE),
                        ("edit_area", pa.list_(box)), ("annotated_qa_pairs", pa.list_(question)),
                        ("tags", pa.list_(pa.list_(pa.int32()))), ("map", pa.map_(pa.string(), pa.int8()))])
    area = {"x": 1.5, "y": 2.0, "width": 3.0, "height": 4.0}
    asked = {"question": "Is it?", "answer": "Yes", "box": area, "_step8_sanity": {"confidence": 0.1, "error": None}}
    rows = [
        {"physics_category": "Optics", "physics_law": "Reflection", "edit_operation": "add", "superficial_prompt": "add",
         "image_path": f"{i}.jpg", "input_image": held(i), "edit_area": [area] * i, "annotated_qa_pairs": [asked] * (i % 3),
         "tags": [[1, 2], [], [3]] if i % 2 else None, "map": {"a": 1} if i else None}
        for i in range(7)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema), "pica.parquet", row_group_size=3)
    out = convert("pica.parquet", "pica", more=["--map", "instruction=superficial_prompt", "--map", "source=input_image"])
    cases = lines(f"{out}/cases.jsonl")
    assert len(cases) == 7
    for i, case in enumerate(cases):
        facts = case["facts"]
        assert bytes_of(out, case["source"]) == png(i)
        assert len(json.loads(facts["edit_area"])) == i, facts
        questions = json.loads(facts["annotated_qa_pairs"])
        assert len(questions) == i % 3
        if questions:
            assert questions[0] == asked, questions
        if i % 2:
            assert json.loads(facts["tags"]) == [[1, 2], [], [3]], facts
        if i:
            assert json.loads(facts["map"]) == {"a": 1}, facts


def hostile():
    """Broken and lying files: exit code 2, a word about it, memory bounded."""
    rows = [{"instruction": f"do {i}", "image": held(i), "list": list(range(i))} for i in range(40)]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema([("instruction", pa.string()), ("image", PICTURE),
                                                         ("list", pa.list_(pa.int32()))])), "good.parquet")
    with open("good.parquet", "rb") as file:
        good = file.read()
    run("dataset", "check", "good.parquet")
    draw = random.Random(7)
    for trial in range(120 if "--full" in sys.argv else 40):
        broken = bytearray(good)
        kind = trial % 4
        if kind == 0:
            broken = broken[: draw.randrange(len(broken))]
        elif kind == 1:
            broken[draw.randrange(len(broken) - 600, len(broken) - 8)] ^= 1 << draw.randrange(8)
        elif kind == 2:
            for _ in range(5):
                broken[draw.randrange(4, len(broken))] = draw.randrange(256)
        else:
            broken[-8:-4] = draw.randrange(1 << 32).to_bytes(4, "little")
        with open("broken.parquet", "wb") as file:
            file.write(broken)
        done = run("dataset", "check", "broken.parquet", code=None)
        assert done.returncode in (0, 1, 2), (trial, done.returncode, done.stderr)
        assert done.returncode != 2 or "broken.parquet" in done.stderr or "--map" in done.stderr, done.stderr
    # A bomb: a few kilobytes that become gigabytes.
    big = pa.table({"instruction": ["do"], "image": pa.array([b"\0" * (700 << 20)])})
    pq.write_table(big, "bomb.parquet", compression="zstd", use_dictionary=False)
    assert os.path.getsize("bomb.parquet") < 1 << 20
    assert "becomes" in run("dataset", "check", "bomb.parquet", code=2).stderr
    # Deep columns.
    kind, value = pa.int32(), 1
    for _ in range(60):
        kind, value = pa.struct([("a", kind)]), {"a": value}
    pq.write_table(pa.table({"instruction": ["do"], "deep": pa.array([value], kind)}), "deep.parquet")
    assert "deeper" in run("dataset", "check", "deep.parquet", code=2).stderr
    # A picture that is none, and one that is too large to be one.
    table = pa.table({"instruction": ["a", "b"], "image": pa.array([{"bytes": b"no picture", "path": "x"}, held(2)], PICTURE)})
    pq.write_table(table, "no-picture.parquet")
    run("dataset", "check", "no-picture.parquet", code=1)


def memory_and_speed():
    """100,000 rows: flat memory, and at least half of pyarrow's speed from file to records."""
    def rows(count):
        return pa.table({
            "id": [f"case-{i}" for i in range(count)],
            "instruction": [f"Change the colour of thing {i} to blue" for i in range(count)],
            "image": pa.array([{"bytes": None, "path": f"s/{i % 50}.png"} for i in range(count)], PICTURE),
            "type": [f"type {i % 7}" for i in range(count)],
            "boxes": [[[1.0, 2.0, 20.0, 22.0]] for _ in range(count)],
            "score": [i / 7 for i in range(count)],
        })

    os.makedirs("s")
    for i in range(50):
        with open(f"s/{i}.png", "wb") as file:
            file.write(png(i))
    used = {}
    for count in [10_000, 100_000]:
        file = f"many-{count}.parquet"
        pq.write_table(rows(count), file, row_group_size=5000)
        start = time.monotonic()
        done = subprocess.run([PROGRAM, "audit", file + ".none"], env=ENVIRONMENT, capture_output=True)
        idle = time.monotonic() - start
        assert done.returncode == 2
        start = time.monotonic()
        process = subprocess.Popen([PROGRAM, "dataset", "stats", file, "--json"], env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        ours = time.monotonic() - start - idle
        assert os.waitstatus_to_exitcode(status) == 0
        start = time.monotonic()
        records = 0
        # What we do too: twice, and to records.
        for _ in range(2):
            for batch in pq.ParquetFile(file).iter_batches():
                records += len(batch.to_pylist())
        theirs = time.monotonic() - start
        assert records == 2 * count
        used[count] = usage.ru_maxrss / 1024
        print(f"{count} rows: {count / ours:,.0f} rows/s, pyarrow {count / theirs:,.0f} (ratio {theirs / ours:.2f}), "
              f"{used[count]:.0f} MiB")
    assert theirs / ours >= 0.5, (theirs, ours)
    # Cases are kept, rows are not: so much for each case and no more.
    per_case = (used[100_000] - used[10_000]) * 1024 / 90_000
    assert per_case < 6, f"{per_case} KiB a case"


def written():
    """What a report writes is read by the others, typed."""
    with open("results.jsonl", "w") as file:
        for i in range(1000):
            line = {"case": f"c{i}", "editor": "e", "criterion": "beauty", "outcome": "verdict", "score": i / 2,
                    "values": {"first": i, "why": "ü 😀"}, "facts": {"law": "Global"}, "repeat": 0}
            if i % 10 == 0:
                line = {"case": f"c{i}", "editor": "e", "criterion": "beauty", "outcome": "failed", "reason": "no server"}
            file.write(json.dumps(line) + "\n")
    run("report", "results.jsonl", "--out", "judgements.parquet")
    frame = pandas.read_parquet("judgements.parquet")
    assert len(frame) == 1000 and frame["score"].dtype == "float64", frame.dtypes
    assert frame["score"].isna().sum() == 100 and frame["value.first"].dtype == "float64"
    assert frame["value.why"][1] == "ü 😀" and frame["fact.law"][1] == "Global"
    assert frame["outcome"].value_counts().to_dict() == {"verdict": 900, "failed": 100}
    query = "select count(*), sum(score), min(\"value.first\") from 'judgements.parquet' where outcome = 'verdict'"
    count, total, least = duckdb.sql(query).fetchall()[0]
    assert (count, least) == (900, 1.0) and abs(total - sum(i / 2 for i in range(1000) if i % 10)) < 1e-9
    assert pq.read_schema("judgements.parquet").field("repeat").type == pa.int64()
    run("report", "results.jsonl", "--format", "parquet", code=2)


for check in [presets, generic, hostile, memory_and_speed, written]:
    start = time.monotonic()
    check()
    print(f"{check.__name__}: {time.monotonic() - start:.1f} s")
