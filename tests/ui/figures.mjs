// What the dashboard costs: a thousand live calls and four open pages for a minute. `cargo xtask ui --figures`.
//
// The processor time is that of the outlast process alone, from /proc; once without a page, once with four.

import { readFileSync } from 'node:fs';
import { client, end, folder, serve, tab } from './world.mjs';

const [CALLS, TABS, SECONDS] = [1000, 4, Number(process.env.SECONDS ?? 60)];
/** Clock ticks of /proc in a second, on every Linux. */
const TICKS = 100;

const pause = seconds => new Promise(done => setTimeout(done, 1000 * seconds));

function worked(pid) {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

const resident = pid => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

async function share(pid) {
    const before = worked(pid);
    await pause(SECONDS);
    return (100 * (worked(pid) - before)) / SECONDS;
}

async function heap({ page }) {
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    const { metrics } = await session.send('Performance.enable').then(() => session.send('Performance.getMetrics'));
    await session.detach();
    return metrics.find(({ name }) => name === 'JSHeapUsedSize').value / (1 << 20);
}

const served = await serve(folder(), ['--max-calls', '2000', '--max-in-flight', '2000', '--keep-alive', '10s']);
const agent = await client(served.mcp);
for (let no = 0; no < CALLS; no++) agent.call('slow', { no }, { _meta: { progressToken: no } }).catch(() => {});
await pause(10);
const { pid } = served.child;
const show = (name, value, unit) => console.log(`${name.padEnd(44)} ${value.toFixed(1)} ${unit}`);
show(`${CALLS} calls, no page`, await share(pid), '% of a core');
const tabs = [];
for (let no = 0; no < TABS; no++) tabs.push(await tab(`${served.page}#/now`));
await pause(10);
const [page, process_] = [await heap(tabs[0]), resident(pid)];
show(`${CALLS} calls, ${TABS} pages`, await share(pid), '% of a core');
show('page memory at the beginning', page, 'MiB');
show(`page memory after ${SECONDS} s`, await heap(tabs[0]), 'MiB');
show('outlast at the beginning', process_, 'MiB');
show(`outlast after ${SECONDS} s`, resident(pid), 'MiB');
console.log(`calls on the page: ${await tabs[0].page.locator('nav .count').first().textContent().catch(() => 'none')}`);
await end();
process.exit(0);
