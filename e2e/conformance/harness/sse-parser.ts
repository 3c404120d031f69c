/** A chunk as it was received, before validation. */
export interface Chunk {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** Parses a server-sent event stream and records faults that a client would not notice. */
export class SseParser {
  readonly chunks: Chunk[] = [];
  readonly faults: string[] = [];
  comments = 0;
  terminators = 0;
  #rest = "";

  /** Parse more text; returns the chunks that it completes. */
  feed(text: string): Chunk[] {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => this.#block(block));
  }

  /** Check the end of the body; call it once. */
  end(): void {
    if (this.#rest !== "") this.faults.push(`the body ends inside ${JSON.stringify(this.#rest)}`);
    if (this.terminators !== 1) this.faults.push(`${this.terminators} terminators instead of one`);
  }

  #block(block: string): Chunk[] {
    if (block.startsWith(":")) {
      this.comments += 1;
      return [];
    }
    if (!block.startsWith("data: ") || block.includes("\n")) {
      this.faults.push(`not one data line: ${JSON.stringify(block)}`);
      return [];
    }
    if (this.comments === 0) this.faults.push("data before the first comment");
    const data = block.slice("data: ".length);
    if (data === "[DONE]") {
      this.terminators += 1;
      return [];
    }
    if (this.terminators > 0) this.faults.push(`a chunk after the terminator: ${data}`);
    try {
      const chunk = JSON.parse(data) as Chunk;
      this.chunks.push(chunk);
      return [chunk];
    } catch {
      this.faults.push(`not JSON: ${data}`);
      return [];
    }
  }
}
