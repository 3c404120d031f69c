import { QueryClient } from "@tanstack/react-query";

/** The cache of what the server stores. A failed query reports its error instead of retrying. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      // A request without a connection fails at once, with a sentence.
      queries: { retry: false, networkMode: "always" },
      mutations: { networkMode: "always" },
    },
  });
}
