// One run of one client: the scripted model and the driver, side by side, in one network namespace.
//
// usage: node run.mjs COMMAND ARGUMENT…   the driver; it is told the model's address in CLIENT_MODEL
// Ends with the driver's status. The model ends with us.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const model = spawn(process.execPath, [fileURLToPath(new URL("model.mjs", import.meta.url))], {
  stdio: ["ignore", "pipe", "inherit"],
});
process.on("exit", () => model.kill());
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(1));

const [url] = await new Promise((done) => createInterface({ input: model.stdout }).once("line", (line) => done([line])));
const [command, ...args] = process.argv.slice(2);
const driver = spawn(command, args, { stdio: "inherit", env: { ...process.env, CLIENT_MODEL: url } });
driver.on("error", (error) => { console.error(String(error)); process.exit(1); });
driver.on("exit", (code) => process.exit(code ?? 1));
