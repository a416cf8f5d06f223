"""Files made by hand, so that anything in them can be wrong: pictures, archives, networks, traces."""

import hashlib
import json
import math
import struct
import zlib

# Whatever a terminal would obey, with a mark behind it; and other texts that try to get out of their place.
MARK = "PWN"
STEERING = ["\x1b]0;", "\x1b[5;35m", "\x1b[2J", "\x9b5m", "\x07", "\x08\x08", "\r", "\u202e", "\u2066", "\u200f", "\x7f"]
STEERED = "".join(code + MARK for code in STEERING)


# --- pictures ---------------------------------------------------------------------------------------------------

def chunk(kind, data, length=None):
    body = kind + data
    return struct.pack(">I", len(data) if length is None else length) + body + struct.pack(">I", zlib.crc32(body))


def png(width, height, depth=8, colour=2, rows=None, extra=b"", interlace=0):
    """A PNG of one colour; `rows` fewer than `height` cut it short."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 3)
    packer, packed = zlib.compressobj(9), []
    for _ in range(height if rows is None else rows):
        packed.append(packer.compress(b"\0" + b"\x5a" * ((width * channels * depth + 7) // 8)))
    packed.append(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", b"".join(packed))
            + chunk(b"IEND", b""))


def drawn(width, height, square):
    """A small picture with a square in it: (left, top, side, colour)."""
    left, top, side, fill = square
    rows = bytearray()
    for y in range(height):
        rows += b"\0"
        for x in range(width):
            inside = left <= x < left + side and top <= y < top + side
            rows += bytes(fill if inside else (96, (y * 3) & 255, (x * 2) & 255))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows)))
            + chunk(b"IEND", b""))


def tiff(fields, strip):
    """A TIFF with these fields (tag, type, count, value); a value of None is where the strip begins."""
    start = 8 + 2 + 12 * len(fields) + 4
    body = struct.pack("<H", len(fields))
    for tag, kind, count, value in fields:
        value = start if value is None else value
        body += struct.pack("<HHI", tag, kind, count) + struct.pack("<I", value & 0xFFFFFFFF)
    return b"II*\0" + struct.pack("<I", 8) + body + struct.pack("<I", 0) + strip


def grey_tiff(width, height, strip=b"", bits=8, packing=1, rows=None, more=()):
    fields = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, bits), (259, 3, 1, packing), (262, 3, 1, 1),
              (273, 4, 1, None), (277, 3, 1, 1), (278, 4, 1, rows or height), (279, 4, 1, len(strip)), *more]
    return tiff(sorted(fields), strip)


def gif(width, height, frame_width, frame_height, frames=1):
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, frame_width, frame_height, 0) + b"\x02\x02\x4c\x01\0"
    return head + frame * frames + b"\x3b"


def bmp(width, height, bits=24, packing=0, data=b"\0" * 64, colours=0):
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, packing, len(data), 0, 0, colours, 0)
    return b"BM" + struct.pack("<IHHI", 14 + len(header) + len(data), 0, 0, 14 + len(header)) + header + data


def webp(*chunks):
    body = b"WEBP" + b"".join(kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
                              for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_canvas(width, height, flags=0):
    three = lambda number: struct.pack("<I", number)[:3]
    return b"VP8X", bytes([flags, 0, 0, 0]) + three(width - 1) + three(height - 1)


def vp8(width, height, data=b"\0" * 64):
    return b"VP8 ", b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height) + data


def jpeg_as(jpeg, width, height):
    """The same file with another size in its header."""
    for at in range(len(jpeg) - 9):
        if jpeg[at] == 0xFF and jpeg[at + 1] in (0xC0, 0xC1, 0xC2):
            return jpeg[:at + 5] + struct.pack(">HH", height, width) + jpeg[at + 9:]
    return jpeg


def jpeg_scans(jpeg, times):
    """The same file with its last scan over and over."""
    at = jpeg.rfind(b"\xff\xda")
    return jpeg[:at] + jpeg[at:-2] * times + b"\xff\xd9"


# --- archives ---------------------------------------------------------------------------------------------------

def archive(entries, before=b"", comment=b""):
    """A zip of (name, bytes[, what is said otherwise]): `local` another name in front of the data, `size` and `packed`
    other lengths, `method`, `mode`, `at` another place, `crc`."""
    out, directory = bytearray(before), bytearray()
    for name, data, *said in entries:
        said = said[0] if said else {}
        raw = name if isinstance(name, bytes) else name.encode()
        method = said.get("method", 8)
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = data if method == 0 else packer.compress(data) + packer.flush()
        crc, size = said.get("crc", zlib.crc32(data)), said.get("size", len(data))
        length = said.get("packed", len(packed))
        at = said.get("at", len(out))
        local = said.get("local", raw)
        fields = struct.pack("<HHHHHIII", 20, said.get("flags", 0), method, 0, 33, crc, length & 0xFFFFFFFF,
                             size & 0xFFFFFFFF)
        out += b"PK\3\4" + fields + struct.pack("<HH", len(local), 0) + local + packed
        directory += (b"PK\1\2" + struct.pack("<H", 0x031E) + fields + struct.pack("<HHHHHII", len(raw), 0, 0, 0, 0,
                      said.get("mode", 0o100644) << 16, at & 0xFFFFFFFF) + raw)
    end = struct.pack("<HHHHIIH", 0, 0, len(entries) & 0xFFFF, len(entries) & 0xFFFF, len(directory),
                      len(out) - len(before), len(comment))
    return bytes(out + directory + b"PK\5\6" + end + comment)


# --- networks ---------------------------------------------------------------------------------------------------

def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(number & 127 | (128 if number > 127 else 0))
        number >>= 7
        if not number:
            return bytes(out)


def field(number, value):
    """A protobuf field: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def port(name, kind, shape):
    """An input or output; an extent that is a text is free."""
    extents = b"".join(field(1, field(2, n) if isinstance(n, str) else field(1, n)) for n in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, extents)))


def constant(name, shape, values):
    dims = b"".join(field(1, n) for n in shape)
    return dims + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values))


def node(kind, inputs, outputs, attributes=b""):
    return (b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
            + field(4, kind) + attributes)


def onnx(nodes, inputs, outputs, constants=()):
    graph = (b"".join(field(1, one) for one in nodes) + field(2, "g") + b"".join(field(5, one) for one in constants)
             + b"".join(field(11, one) for one in inputs) + b"".join(field(12, one) for one in outputs))
    return field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph)


FLOAT, INT64 = 1, 7


def detector(height="h", width="w", tokens="t", logits=(1, 2, 256), boxes=(1, 2, 4), value=0.0, place=0.5):
    """A network that looks like the detector and always says the same."""
    count = math.prod
    return onnx(
        [node("Identity", ["l"], ["logits"]), node("Identity", ["b"], ["pred_boxes"])],
        [port("pixel_values", FLOAT, [1, 3, height, width]), port("pixel_mask", INT64, [1, height, width]),
         port("input_ids", INT64, [1, tokens]), port("token_type_ids", INT64, [1, tokens]),
         port("attention_mask", INT64, [1, tokens])],
        [port("logits", FLOAT, list(logits)), port("pred_boxes", FLOAT, list(boxes))],
        [constant("l", logits, [value] * count(logits)), constant("b", boxes, [place] * count(boxes))])


def enhancer(shape=(1, 3, "h", "w"), value=None):
    """A network that enlarges twice; with a value, everything it says is that."""
    scales = constant("s", [4], [1.0, 1.0, 2.0, 2.0])
    nodes = [node("Resize", ["x", "", "s"], ["y" if value is None else "z"])]
    constants = [scales]
    if value is not None:
        nodes.append(node("Mul", ["z", "v"], ["y"]))
        constants.append(constant("v", [1], [value]))
    return onnx(nodes, [port("x", FLOAT, list(shape))], [port("y", FLOAT, [1, 3, "H", "W"])], constants)


# --- traces -----------------------------------------------------------------------------------------------------

def sha256(data):
    return hashlib.sha256(data).hexdigest()


def bundle(manifest, events, sealed=True):
    """The two files of a trace; sealed, so that nobody can tell that it was changed."""
    text = json.dumps(manifest, indent=2).encode() + b"\n"
    seal, lines = sha256(text), []
    for seq, event in enumerate(events):
        body = json.dumps({"seq": seq, "at": event.get("at", 0), "event": event["event"]})[:-1]
        seal = sha256(f"{seal}\n{body}".encode()) if sealed else seal
        lines.append(f'{body},"seal":"{seal}"}}\n')
    return text, "".join(lines).encode()


def places(value, path=()):
    """Every place in a value, as the keys that lead there."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, path + (key,))


def replaced(value, path, new):
    """A copy with something else at a place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def without(value, path):
    """A copy without what is at a place."""
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(value[path[0]], path[1:])
    return copy


def deep(levels):
    """Lists in lists; as text, because Python cannot write it."""
    return "[" * levels + "]" * levels
