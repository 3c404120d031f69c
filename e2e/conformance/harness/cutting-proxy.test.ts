import { expect, test } from "vitest";
import { FrameReader, isChunk } from "./cutting-proxy.ts";

const HEAD = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

/** A text frame as a server sends it: without a mask. */
function frame(text: string): Buffer {
  const payload = Buffer.from(text);
  const { length } = payload;
  const head = length < 126 ? [0x81, length] : [0x81, 126, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), payload]);
}

const SHORT = frame('{"type":"chunk","sequence":0}');
const LONG = frame(`{"type":"end","filler":"${"x".repeat(300)}"}`);
const PING = Buffer.from([0x89, 0x00]);

test.each([1, 2, 3, 7, 1_000])("frames are found in pieces of %i bytes", (size) => {
  const bytes = Buffer.concat([Buffer.from(HEAD), SHORT, PING, LONG, SHORT]);
  const reader = new FrameReader();
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    found.push(...reader.feed(bytes.subarray(at, at + size)));
  }

  expect(found.map(String)).toEqual([HEAD, SHORT, PING, LONG, SHORT].map(String));
  expect(found.map(isChunk)).toEqual([false, true, false, false, true]);
});

test("any other response is passed on unchanged", () => {
  const reader = new FrameReader();
  const head = "HTTP/1.1 200 OK\r\n\r\n";
  expect(reader.feed(Buffer.from(`${head}{"a"`)).map(String)).toEqual([head, '{"a"']);
  expect(reader.feed(Buffer.from(":1}")).map(String)).toEqual([":1}"]);
});
