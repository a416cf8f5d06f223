"""Writes a data set of small pictures: data.py FOLDER CASES [EDITORS] [SIDE]"""

import json
import pathlib
import struct
import sys
import zlib

folder, cases = pathlib.Path(sys.argv[1]), int(sys.argv[2])
editors = int(sys.argv[3]) if len(sys.argv) > 3 else 1
side = int(sys.argv[4]) if len(sys.argv) > 4 else 256


def png(seed):
    """A gradient with a square that depends on the seed."""
    x, y = seed * 37 % (side - 40), seed * 53 % (side - 40)
    rows = []
    for row in range(side):
        line = bytearray(b"\0")
        for column in range(side):
            inside = x <= column < x + 32 and y <= row < y + 32
            line += bytes((200, seed % 256, seed // 256 % 256) if inside else (row % 256, column % 256, 90))
        rows.append(bytes(line))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(rows), 1))
            + chunk(b"IEND", b""))


folder.mkdir(parents=True, exist_ok=True)
distinct = [png(number) for number in range(20)]
with open(folder / "cases.jsonl", "w") as lines:
    for case in range(cases):
        (folder / f"{case}.png").write_bytes(distinct[case % 20])
        edits = {}
        for editor in range(editors):
            name = f"{case}-{editor}.png"
            # A comment at the end makes each file another one.
            (folder / name).write_bytes(distinct[(case + editor + 1) % 20] + f"{case} {editor}".encode())
            edits[f"editor-{editor}"] = name
        line = {"id": f"{case:05}", "source": f"{case}.png", "instruction": f"Paint square {case} blue",
                "type": "Change Color", "target": "square", "boxes": [[10, 10, 42, 42]], "edits": edits}
        lines.write(json.dumps(line) + "\n")
