import type { Literal } from "mdast";
import type { Extension as FromMarkdownExtension, Handle } from "mdast-util-from-markdown";
import { factorySpace } from "micromark-factory-space";
import { markdownLineEnding, markdownSpace } from "micromark-util-character";
import type {
  Code,
  Construct,
  Effects,
  Extension,
  State,
  TokenizeContext,
} from "micromark-util-types";

/** A formula in TeX, without its delimiters. */
export interface InlineMath extends Literal {
  type: "inlineMath";
  /** Whether it is delimited as a formula of its own, `\[…\]` or `$$…$$`. */
  isDisplay: boolean;
}

/** A formula in TeX between lines of delimiters. */
export interface MathBlock extends Literal {
  type: "math";
}

declare module "mdast" {
  interface PhrasingContentMap {
    inlineMath: InlineMath;
  }
  interface RootContentMap {
    inlineMath: InlineMath;
    math: MathBlock;
  }
}

declare module "micromark-util-types" {
  interface TokenTypeMap {
    mathText: "mathText";
    mathTextFence: "mathTextFence";
    mathTextData: "mathTextData";
    mathFlow: "mathFlow";
    mathFlowFence: "mathFlowFence";
    mathFlowData: "mathFlowData";
  }
}

const DOLLAR = 36;
const LEFT_PARENTHESIS = 40;
const RIGHT_PARENTHESIS = 41;
const LEFT_BRACKET = 91;
const BACKSLASH = 92;
const RIGHT_BRACKET = 93;

/** The second character of the closing delimiter, by that of the opening one. */
const CLOSING: ReadonlyMap<Code, number> = new Map([
  [DOLLAR, DOLLAR],
  [LEFT_PARENTHESIS, RIGHT_PARENTHESIS],
  [LEFT_BRACKET, RIGHT_BRACKET],
]);

/** Whether two characters open a formula. A single `$` does not, since it is mostly a currency. */
function opens(first: Code, second: Code): boolean {
  return first === DOLLAR ? second === DOLLAR : second !== DOLLAR && CLOSING.has(second);
}

/** A formula within a paragraph, `\(…\)`, `\[…\]` or `$$…$$`. */
const mathText: Construct = {
  name: "mathText",
  tokenize(effects: Effects, ok: State, nok: State): State {
    let first: Code;
    let closing: Code;
    let fence: ReturnType<Effects["enter"]>;

    const start: State = (code) => {
      first = code;
      effects.enter("mathText");
      effects.enter("mathTextFence");
      effects.consume(code);
      return second;
    };
    const second: State = (code) => {
      if (!opens(first, code)) return nok(code);
      closing = CLOSING.get(code) ?? null;
      effects.consume(code);
      effects.exit("mathTextFence");
      return between;
    };
    const between: State = (code) => {
      if (code === null) return nok(code);
      if (markdownLineEnding(code)) {
        effects.enter("lineEnding");
        effects.consume(code);
        effects.exit("lineEnding");
        return between;
      }
      if (code === first) {
        fence = effects.enter("mathTextFence");
        effects.consume(code);
        return afterFirst;
      }
      effects.enter("mathTextData");
      return data(code);
    };
    const afterFirst: State = (code) => {
      if (code === closing) {
        effects.consume(code);
        effects.exit("mathTextFence");
        effects.exit("mathText");
        return ok;
      }
      fence.type = "mathTextData";
      // The second character of a command, such as that of `\\`, closes nothing.
      if (first !== BACKSLASH || code === null || markdownLineEnding(code)) return data(code);
      effects.consume(code);
      return data;
    };
    const data: State = (code) => {
      if (code === null || code === first || markdownLineEnding(code)) {
        effects.exit("mathTextData");
        return between(code);
      }
      effects.consume(code);
      return data;
    };
    return start;
  },
};

const nextLineInContainer: Construct = {
  partial: true,
  tokenize(this: TokenizeContext, effects: Effects, ok: State, nok: State): State {
    return (code) => {
      if (code === null) return nok(code);
      effects.enter("lineEnding");
      effects.consume(code);
      effects.exit("lineEnding");
      return (next) => (this.parser.lazy[this.now().line] ? nok(next) : ok(next));
    };
  },
};

/** A line that has only the two characters of a delimiter. */
function tokenizeFenceLine(effects: Effects, pair: readonly [Code, Code], ok: State, nok: State) {
  const end: State = (code) => (code === null || markdownLineEnding(code) ? ok(code) : nok(code));
  const second: State = (code) => {
    if (code !== pair[1]) return nok(code);
    effects.consume(code);
    effects.exit("mathFlowFence");
    return trailing;
  };
  const trailing: State = (code) =>
    markdownSpace(code) ? factorySpace(effects, end, "whitespace")(code) : end(code);
  return (code: Code) => {
    if (code !== pair[0]) return nok(code);
    effects.enter("mathFlowFence");
    effects.consume(code);
    return second;
  };
}

/**
 * A formula between two lines with `\[` and `\]`, or `$$` and `$$`. As fenced code, it ends with
 * the document or its container if it is not closed.
 */
function mathFlow(open: readonly [Code, Code], close: readonly [Code, Code]): Construct {
  return {
    concrete: true,
    name: "mathFlow",
    tokenize(this: TokenizeContext, effects: Effects, ok: State, nok: State): State {
      const closingLine: Construct = {
        partial: true,
        tokenize: (closeEffects, closeOk, closeNok) => {
          const fence = tokenizeFenceLine(closeEffects, close, closeOk, closeNok);
          return (code) => {
            closeEffects.enter("lineEnding");
            closeEffects.consume(code);
            closeEffects.exit("lineEnding");
            return (next) =>
              markdownSpace(next)
                ? factorySpace(closeEffects, fence, "linePrefix", 4)(next)
                : fence(next);
          };
        },
      };
      const after: State = (code) => {
        effects.exit("mathFlow");
        return ok(code);
      };
      const atLineEnd: State = (code) =>
        code === null ? after(code) : effects.check(nextLineInContainer, atNextLine, after)(code);
      const atNextLine: State = (code) => effects.attempt(closingLine, after, beforeContent)(code);
      const beforeContent: State = (code) => {
        effects.enter("lineEnding");
        effects.consume(code);
        effects.exit("lineEnding");
        return contentStart;
      };
      const contentStart: State = (code) => {
        if (code === null || markdownLineEnding(code)) return atLineEnd(code);
        effects.enter("mathFlowData");
        return content(code);
      };
      const content: State = (code) => {
        if (code === null || markdownLineEnding(code)) {
          effects.exit("mathFlowData");
          return atLineEnd(code);
        }
        effects.consume(code);
        return content;
      };
      const opened: State = (code) => (this.interrupt ? ok(code) : atLineEnd(code));
      const fence = tokenizeFenceLine(effects, open, opened, nok);
      return (code) => {
        effects.enter("mathFlow");
        return fence(code);
      };
    },
  };
}

/** The syntax of formulas in TeX, with the delimiters that models write. */
export const mathSyntax: Extension = {
  flow: {
    [DOLLAR]: mathFlow([DOLLAR, DOLLAR], [DOLLAR, DOLLAR]),
    [BACKSLASH]: mathFlow([BACKSLASH, LEFT_BRACKET], [BACKSLASH, RIGHT_BRACKET]),
  },
  text: { [DOLLAR]: mathText, [BACKSLASH]: mathText },
};

const exitData: Handle = function (token) {
  this.config.enter.data?.call(this, token);
  this.config.exit.data?.call(this, token);
};

/** The nodes of formulas. */
export const mathFromMarkdown: FromMarkdownExtension = {
  enter: {
    mathText(token) {
      const isDisplay = !this.sliceSerialize(token).startsWith("\\(");
      this.enter({ type: "inlineMath", value: "", isDisplay }, token);
      this.buffer();
    },
    mathFlow(token) {
      this.enter({ type: "math", value: "" }, token);
      this.buffer();
    },
  },
  exit: {
    mathText(token) {
      const value = this.resume();
      const node = this.stack.at(-1) as unknown as InlineMath;
      node.value = value.trim();
      this.exit(token);
    },
    mathTextData: exitData,
    mathFlow(token) {
      const value = this.resume();
      const node = this.stack.at(-1) as unknown as MathBlock;
      node.value = value.trim();
      this.exit(token);
    },
    mathFlowData: exitData,
  },
};
