import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
// Only a defect reaches the limit, not a busy machine.
configure({ asyncUtilTimeout: 30_000 });

afterEach(cleanup);
