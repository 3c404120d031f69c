import type { NextConfig } from "next";

const agent = process.env.AGENT_URL ?? "http://127.0.0.1:8000";

const nextConfig: NextConfig = {
  // Next.js would gzip the stream, and gzip keeps it back until it ends.
  compress: false,
  async rewrites() {
    return [
      { source: "/api/chat/:path*", destination: `${agent}/api/chat/:path*` },
      { source: "/api/chats/:path*", destination: `${agent}/api/chats/:path*` },
    ];
  },
};

export default nextConfig;
