"""A fake chat server for load: replies after a while, fails now and then, and counts what it saw.

Usage: server.py PORT SECONDS FAULTS   (GET /seen gives what it saw as JSON)
"""

import asyncio
import hashlib
import json
import sys

PORT, SECONDS, FAULTS = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
LABELS = {
    True: ["Perfect Consistency", "Single Anomaly", "Multiple Anomalies", "Scene Collapse"],
    False: ["Flawless Execution", "Over Modification", "Wrong Action", "Localization Failure"],
}
seen = {"requests": 0, "faults": 0, "now": 0, "most": 0, "busy": 0.0, "first": None, "last": None}


def note(change):
    """Keeps the integral of the concurrency, so that its mean can be told."""
    now = asyncio.get_running_loop().time()
    if seen["last"] is not None:
        seen["busy"] += seen["now"] * (now - seen["last"])
    else:
        seen["first"] = now
    seen["last"] = now
    seen["now"] += change
    seen["most"] = max(seen["most"], seen["now"])


def answer(body):
    """A label that depends on the request alone."""
    number = hashlib.sha256(body).digest()[0]
    label = LABELS[b"criterion, Visual Consistency" in body][number % 4]
    message = {"role": "assistant", "content": f"<Start Final Answer>{label}</Start Final Answer>"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
    return {"id": "x", "model": "fake", "usage": usage,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def reply(writer, status, value):
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                mean = seen["busy"] / max(1e-9, (seen["last"] or 0) - (seen["first"] or 0))
                reply(writer, 200, {**seen, "mean": round(mean, 1)})
                continue
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                          if line.lower().startswith(b"content-length"))
            body = await reader.readexactly(length)
            seen["requests"] += 1
            number = seen["requests"]
            note(+1)
            await asyncio.sleep(SECONDS)
            note(-1)
            if FAULTS and number % round(1 / FAULTS) == 0:
                seen["faults"] += 1
                kind = seen["faults"] % 4
                if kind == 0:
                    break  # the connection ends without a word
                if kind == 3:
                    reply(writer, 429, {"error": {"message": "slow down", "code": 429}})
                else:
                    reply(writer, 500 + kind, {"error": {"message": "oops"}})
            else:
                reply(writer, 200, answer(body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", PORT, limit=1 << 26, backlog=1024)
    async with server:
        await server.serve_forever()


asyncio.run(main())
