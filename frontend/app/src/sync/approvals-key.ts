/** The key under which TanStack Query holds everything that is read of approvals. */
export const APPROVALS_KEY = ["approvals"];
