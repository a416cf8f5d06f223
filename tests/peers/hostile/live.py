"""The kinds that need a server, a network of ours, or a process that is disturbed while it runs."""

import base64
import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import build
from breaker import KEY
from build import STEERED
from kinds import check_lines, data_set, dump, golden, kind, mangled, run_folder, write_bundle

GOOD = "Flawless Execution"
ANSWER = "<Start Final Answer>{}</Start Final Answer>"

# Inside the answer's tags and yet no answer.
DOUBTED = ["{} is wrong", "{}: no", "I doubt {}", "N/A ({} is impossible)", "If it were blue: {}", "not {}", "anything but {}",
           "{} or Wrong Action", "certainly not {}", "{}?", "no {}", "{} would be a lie", "{} / Wrong Action", "neither", "",
           "I cannot say whether it is {}", "Perhaps {}, perhaps Wrong Action", "never {}", "unlike {}"]


def completion(message, finish="stop", **more):
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, **more}


def says(text, **more):
    return completion({"role": "assistant", "content": text}, **more)


def reply(b, rng, place):
    """Status, headers, body; and whether it may be a verdict."""
    escaped = KEY.replace("s", "\\u0073", 1).replace("-", "\\u002d")
    half, packed = KEY[:len(KEY) // 2], base64.b64encode(KEY.encode()).decode()
    match rng.randrange(12):
        case 0: return 200, {}, dump(says(ANSWER.format(rng.choice(DOUBTED).format(GOOD)))), False
        case 1: return 200, {}, mangled(rng, dump(says(ANSWER.format(GOOD)))), True
        case 2: return 200, {}, dump(says(rng.choice(["", " ", "A" * 200_000, STEERED, "<" * 5000, "```json\n" + "[" * 5000]))), False
        case 3:
            # The key comes back, in one of its forms.
            text = dump(says(f"@ {ANSWER.format('nothing')}")).decode()
            return 200, {}, text.replace("@", rng.choice([KEY, escaped, packed, "Bearer " + KEY])).encode(), False
        case 4:
            body = json.dumps({"error": {"message": f"@ {STEERED}", "code": "invalid"}})
            return 400, {}, body.replace("@", rng.choice([KEY, escaped, packed])).encode(), False
        case 5: return 200, {}, dump(completion({"role": "assistant", "content": None, "refusal": STEERED}, finish=STEERED)), False
        case 6: return 200, {}, dump(completion(rng.choice([None, [], {}, 1, "x", {"content": {"a": 1}}, {"content": [1]}]))), False
        case 7:
            call = {"id": STEERED, "type": "function", "function": {"name": STEERED, "arguments": "[" * 3000}}
            return 200, {}, dump(completion({"role": "assistant", "content": "", "tool_calls": [call] * 50})), False
        case 8: return 200, {"Content-Encoding": "gzip"}, b"\x1f\x8b" + bytes(50), False
        case 9: return 200, {}, build.deep(100_000).encode(), False
        case 10: return 200, {"Content-Type": STEERED.encode("ascii", "ignore").decode().replace("\r", "")}, b"\xff\xfe\x00", False
        case _:
            message = {"role": "assistant", "content": ANSWER.format(GOOD), "reasoning_content": STEERED}
            body = completion(message, finish=rng.choice(["length", "content_filter", "stop"]))
            body["usage"] = rng.choice([None, {}, {"prompt_tokens": -1}, {"prompt_tokens": 2**64}, {"prompt_tokens": 1e300}])
            return 200, {}, dump(body), True


class Server(http.server.ThreadingHTTPServer):
    """Answers by a function of the request's text."""

    daemon_threads = True

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode("utf-8", "replace")
                status, headers, data, _ = answer(body)
                self.send_response(status)
                for name, text in ({"Content-Type": "application/json"} | headers).items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(data)

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        threading.Thread(target=self.serve_forever, daemon=True).start()


@kind(200, 2000)
def replies(b, count):
    """What a server may say."""
    rng = b.rng("replies")
    picture = build.drawn(24, 16, (4, 4, 6, (30, 30, 200)))
    number = 0
    while number < count:
        with b.place("replies") as place:
            made = [reply(b, rng, place) for _ in range(min(400, count - number))]
            served = [0]

            def answer(request, made=made, served=served):
                # The instruction names the case.
                served[0] += 1
                at = request.find("make it number ")
                digits = "".join(c for c in request[at + 15:at + 21] if c.isdigit())
                return made[int(digits or 0) % len(made)]

            server = Server(answer)
            folder = data_set(place, "set", [(f"{n}.png", picture) for n in range(len(made))])
            ran = b.run("replies", place, [
                "eval", folder, "--model", "m", "--base-url", server.url, "--mode", "plain", "--criterion", "if", "--run",
                "run", "--keep-going", "--no-cache", "--concurrency", "32", "--timeout", "20"], cpu=180, seconds=400,
                terminal=True, what="replies")
            check_lines(b, "replies", place.cwd / "run", ran)
            for line in (place.cwd / "run/results.jsonl").read_text(encoding="utf-8").splitlines():
                line = json.loads(line)
                _, _, body, may = made[int(line["case"][1:])]
                b.expect("replies", line["case"], may or line["outcome"] != "verdict",
                         f"a verdict from {body[:200]!r}")
            b.run("replies", place, ["view", "run", "--out", "pages"])
            b.run("replies", place, ["trace", "show", "run"], terminal=True)
            b.run("replies", place, ["report", "run"], terminal=True)
            server.shutdown()
            server.server_close()
            b.count("replies", served[0])
            number += max(len(made), 1)


# --- networks ---------------------------------------------------------------------------------------------------

def runtime(b):
    """Where ONNX Runtime is, if it is here."""
    if os.environ.get("ORT_DYLIB_PATH"):
        return os.environ["ORT_DYLIB_PATH"]
    places = [b.work.parent / "grounding/cache", b.work.parent / "enhancer/cache",
              b.program.parent.parent / "peers/grounding/cache", Path.home() / ".cache/deeplook/runtime"]
    found = [path for place in places for path in place.rglob("libonnxruntime.so*")]
    return str(found[0]) if found else None


@kind(30, 120)
def networks(b, count):
    """Networks that want absurd sizes, or say what is no number."""
    library = runtime(b)
    if not library:
        b.show("hostile: networks: skipped, because ONNX Runtime is not here (ORT_DYLIB_PATH)")
        return
    rng, nan, inf = b.rng("networks"), float("nan"), float("inf")
    vocabulary = ["[PAD]"] + [f"[unused{n}]" for n in range(99)] + ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary += [f"w{n}" for n in range(104, 1012)] + ["."] + [f"v{n}" for n in range(1013, 1037)] + ["a", "dog"]
    known = [build.detector(value=nan), build.detector(place=nan), build.detector(value=inf), build.detector(place=inf),
             build.detector(logits=(1, 2, 3)), build.detector(boxes=(1, 3, 4)), build.detector(logits=(2, 256)),
             build.detector(boxes=(1, 2, 5)), build.detector(logits=(0,), boxes=(0,)), build.detector(height=2**31, width=2**31),
             build.detector(height=2**62, width=2**62), build.detector(height=1, width=1), build.detector(tokens=2**40),
             build.detector(tokens=1), build.detector(tokens=0), build.detector(height=10**6, width=16)]
    enhancers = [build.enhancer(value=nan), build.enhancer(value=inf), build.enhancer(shape=(1, 3, 2**40, 2**40)),
                 build.enhancer(shape=(2**40, 3, "h", "w")), build.enhancer(shape=(1, 1, "h", "w")), build.enhancer(shape=())]
    with b.place("networks") as place:
        (place.sent / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        picture = place.sent / "a.png"
        picture.write_bytes(build.drawn(96, 64, (20, 20, 20, (200, 30, 30))))
        env = {"ORT_DYLIB_PATH": library}
        model = place.sent / "model.onnx"
        for number in range(count):
            is_known = number < len(known) + len(enhancers)
            if number < len(known):
                model.write_bytes(known[number])
            elif is_known:
                model.write_bytes(enhancers[number - len(known)])
            else:
                model.write_bytes(mangled(rng, rng.choice(known + enhancers + [build.detector(), build.enhancer()])))
            finds = ["tool", "detect_object", picture, "--args", '{"detect_object_name":"a"}', "--detector", model]
            ran = b.run("networks", place, finds, env=env, what=str(number), megabytes=2000)
            if number < len(known):
                b.expect("networks", number, ran.code == 2, f"a network that says nothing gives {ran.said[:200]!r}")
            ran = b.run("networks", place, ["tool", "enhance", picture, "--enhancer", model], env=env, what=str(number),
                        megabytes=2000)
            if is_known and number >= len(known):
                b.expect("networks", number, ran.code == 2, f"a network that says nothing gives {ran.said[:200]!r}")
            b.count("networks")


# --- settings ---------------------------------------------------------------------------------------------------

@kind(200, 1500)
def settings(b, count):
    """Settings of tools, profiles, prices and plans."""
    rng = b.rng("settings")
    fields = [("tool", "localize_differences", name) for name in
              ("max_regions", "noise_slope", "noise_floor", "margin", "min_area", "threshold", "x")]
    fields += [("tool", "zoom_in", name) for name in ("padding", "floor", "ceiling", "most")]
    fields += [("profile", None, name) for name in ("name", "base_url", "key_env", "dialect", "boxes", "max_image_side",
                                                    "max_images", "image_format", "max_tokens_param")]
    fields += [("prices", "m", name) for name in ("input", "output", "cached")]
    values = ["-1", "0", "1e308", "-1e308", "nan", "inf", "-inf", "9223372036854775807", "''", "[]", "{}", "true", "'PLANTED_SECRET'",
              "'../private/secret.txt'", json.dumps(STEERED), "'" + "A" * 5000 + "'", "1e-308", "[[1,2],[3]]", "4294967296"]
    with b.place("settings") as place:
        one, two = place.sent / "a.png", place.sent / "b.png"
        one.write_bytes(build.drawn(48, 32, (8, 8, 10, (200, 30, 30))))
        two.write_bytes(build.drawn(48, 32, (8, 8, 10, (30, 30, 200))))
        folder = data_set(place, "set", [("a.png", two.read_bytes())])
        for number in range(count):
            path = place.sent / "settings.toml"
            what, table, name = rng.choice(fields)
            text = (f"[{table}]\n" if table else "") + f"{name} = {rng.choice(values)}\n"
            text += f"{rng.choice(fields)[2]}2 = {rng.choice(values)}\n" if rng.random() < 0.1 else ""
            path.write_text(text, encoding="utf-8")
            if what == "tool":
                args = ["tool", table, one, two, "--tool-settings", path, "--args", '{"bbox":[1,1,9,9]}' if table == "zoom_in" else "{}"]
                args = ["eval", folder, "--tool-settings", path, "--run", f"r{number}", "--quiet"] if number % 2 else args
            else:
                flag = "--profile" if what == "profile" else "--prices"
                args = ["eval", folder, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", flag, path, "--plan"]
            b.run("settings", place, args, terminal=rng.random() < 0.3, what=text.replace("\n", " ")[:80])
            b.count("settings")


# --- known attacks ----------------------------------------------------------------------------------------------

@kind(1, 1)
def attacks(b, _):
    """What was found once must not come back: one function for each, by the point of the list that it stands for."""
    for attack in (keys_of_traces, unfinished, deleted_run, wide_table, half_a_request, memory, negative_costs):
        with b.place("attacks") as place:
            attack(b, place)
            b.count("attacks")


def keys_of_traces(b, place):
    """1 and 3: a trace names a server, a key and files."""
    name, manifest, events = next(one for one in golden() if one[0].startswith("tool-native"))
    for changes in ({("model", "base_url"): b.elsewhere.url}, {("model", "profile", "base_url"): b.elsewhere.url},
                    {("model", "profile", "key_env"): "PLANTED_SECRET"}):
        evil = build.replaced(manifest, ("model", "base_url"), b.elsewhere.url)
        for path, new in changes.items():
            evil = build.replaced(evil, path, new)
        run = place.sent / f"run{len(list(place.sent.iterdir()))}"
        write_bundle(run_folder(run) / "judgements/evil", evil, events)
        for more in ([], ["--despite-flaws"], ["--param", "seed=1"]):
            b.run("attacks", place, ["replay", run / "judgements/evil", "--from-turn", "2", "--trace", "fork", *more])
        b.run("attacks", place, ["replay", run])


def unfinished(b, place):
    """12: killed between making a folder and the first event."""
    _, manifest, events = golden()[-1]
    run = run_folder(place.sent / "run")
    write_bundle(run / "judgements/good", manifest, events)
    (run / "judgements/empty").mkdir()
    write_bundle(run / "judgements/begun", manifest, [])
    for args in (["replay", run, "--tools", "recorded"], ["trace", "pack", run, "-o", "run.zip"],
                 ["view", run, "--out", "pages"]):
        b.run("attacks", place, args, codes=(0,), what="unfinished")


def deleted_run(b, place):
    """13: the folder of a run goes away while it is judged."""
    picture = build.drawn(24, 16, (4, 4, 6, (30, 30, 200)))
    folder = data_set(place, "set", [(f"{n}.png", picture) for n in range(60)])
    asked = []

    def answer(request):
        asked.append(1)
        if len(asked) == 20:
            shutil.rmtree(place.cwd / "run", ignore_errors=True)
        time.sleep(0.02)
        return 200, {}, dump(says(ANSWER.format(GOOD))), True

    server = Server(answer)
    b.run("attacks", place, ["eval", folder, "--model", "m", "--base-url", server.url, "--mode", "plain", "--criterion",
                             "if", "--run", "run", "--no-cache", "--quiet"], codes=(1, 2), what="deleted run")
    server.shutdown()
    server.server_close()


def wide_table(b, place):
    """13: a header of 100,000 columns, and many lines."""
    path = place.sent / "wide.csv"
    path.write_text(",".join(f"column{n}" for n in range(100_000)) + "\n" + ",".join("1" for _ in range(100_000)) + "\n")
    b.run("attacks", place, ["dataset", "check", path], cpu=20, what="wide table")
    folder = data_set(place, "set", [], [{"id": str(n), "source": "source.png", "instruction": "x"} for n in range(200_000)])
    b.run("attacks", place, ["dataset", "stats", folder], cpu=60, megabytes=900, what="many lines")


def half_a_request(b, place):
    """13: one byte of a request, and Ctrl-C."""
    name, manifest, events = golden()[-1]
    write_bundle(run_folder(place.sent / "run") / "judgements/good", manifest, events)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def disturb(process):
        held = []
        for _ in range(100):
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", port), 1))
                break
            time.sleep(0.1)
        for data in (b"G", b"GET / HTTP/1.1\r\nHost: 127.0.0.1", bytes(range(256)), b"GET /" + b"a" * 100_000):
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", port), 1))
                held[-1].sendall(data)
        time.sleep(0.3)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
        time.sleep(30)

    b.run("attacks", place, ["view", place.sent / "run", "--port", port], codes=(0,), seconds=40, during=disturb,
          what="half a request")


def memory(b, place):
    """8: many pictures at a time that are large when they are decoded."""
    large = build.png(9_000, 9_000, 16, 2)
    folder = data_set(place, "set", [(f"{n}.png", large) for n in range(4)])
    ran = b.run("attacks", place, ["eval", folder, "--run", "run", "--mode", "plain", "--quiet", "--concurrency", "8"],
                megabytes=2200, cpu=240, seconds=400, codes=(0, 1), what="large pictures")
    check_lines(b, "attacks", place.cwd / "run", ran)


def negative_costs(b, place):
    """11: lines that say that money was given back."""
    picture = build.drawn(24, 16, (4, 4, 6, (30, 30, 200)))
    folder = data_set(place, "set", [(f"{n}.png", picture) for n in range(12)])
    prices = place.sent / "prices.toml"
    prices.write_text('[[models]]\nname = "m"\ninput = 1000000\noutput = 1000000\n')
    server = Server(lambda request: (200, {}, dump(says(ANSWER.format(GOOD))), True))
    command = ["eval", folder, "--model", "m", "--base-url", server.url, "--mode", "plain", "--criterion", "if", "--run", "run",
               "--no-cache", "--quiet", "--concurrency", "1", "--max-calls", "2"]
    b.run("attacks", place, command, what="costs")
    results = place.cwd / "run/results.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    for line in lines:
        line.update(paid=-1000, turns=0, cached=4_000_000_000)
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    b.run("attacks", place, command, codes=(1,), what="costs again")
    left = len(results.read_text().splitlines())
    b.expect("attacks", "costs", left <= 2, f"{left} judgements within --max-calls 2")
    server.shutdown()
    server.server_close()
