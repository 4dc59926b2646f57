// What the TypeScript SDK's client sees at an endpoint: lists everything, calls one tool, prints it as one JSON line.
// node sdk_client.mjs FOLDER URL TOOL ARGUMENTS; FOLDER is where the SDK is installed.
import { createRequire } from "node:module";

const [folder, url, tool, given] = process.argv.slice(2);
const load = createRequire(`${folder}/`);
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");

const client = new Client({ name: "outfitter-conformance", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const { prompts } = await client.listPrompts();
const result = await client.callTool({ name: tool, arguments: JSON.parse(given) });
const shown = { tools: tools.map((one) => one.name), resources: resources.length, prompts: prompts.length, result };
console.log(JSON.stringify(shown));
await client.close();
