// The official reference server (2025-11-25, with sessions), over Streamable HTTP on PORT.

import '@modelcontextprotocol/server-everything/dist/transports/streamableHttp.js';
