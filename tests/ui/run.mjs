// The dashboard in a real browser, with a real outlast behind it: `node run.mjs [NAME…]`. OUTLAST is the program,
// CHROMIUM the browser, SHOTS a folder for screenshots. Each check starts what it needs; an error in the console or a
// request to anybody else fails the check that it happens in.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { example, poisoned, serveExample } from './example.mjs';
import { client, end, folder, serve, serveFile, tab, ui, wrap } from './world.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const { OUTLAST, SHOTS } = process.env;
const VIEWS = ['now', 'waiting', 'tasks', 'servers', 'tools', 'call/1234.1'];
const HELD = ['--tool', 'delete_*=hold:true'];

const go = (page, view) => page.evaluate(to => { location.hash = `#/${to}`; }, view);
const row = (page, text) => page.locator('.row', { hasText: text });

/** Those that the documentation shows. */
const PICTURES = ['now-light', 'now-dark', 'waiting-light', 'tools-light', 'call-light', 'now-light-phone'];

async function shot(page, name) {
    if (SHOTS && PICTURES.includes(name)) await page.screenshot({ path: join(SHOTS, `dashboard-${name}.png`) });
}

/** Waits until something is so; what it was instead, if it never is. */
async function until(look, so) {
    for (let left = 150; ; left--) {
        const found = await look();
        if (so(found)) return found;
        assert.ok(left > 0, `never so: ${JSON.stringify(found)}`);
        await new Promise(done => setTimeout(done, 100));
    }
}

const audit = state => execFileSync(OUTLAST, ['audit', '--json', '--state', state], { encoding: 'utf8' }).trim().split('\n').map(JSON.parse);

const checks = {
    /** A call appears, tells how far it is, and is among the ended ones once it is over; its story is told. */
    async live(later) {
        const served = await serve(folder());
        const [one, two] = [await tab(`${served.page}#/now`), await tab(`${served.page}#/now`)];
        await one.page.getByText('No call is running.').waitFor();
        const agent = await client(served.mcp);
        const call = agent.call('slow', { no: 1 }, { _meta: { progressToken: 7 } });
        for (const { page } of [one, two]) {
            await row(page, 'slow').getByText('compiling <b>part 1</b>').waitFor();
            await row(page, 'slow').locator('.state', { hasText: 'running' }).waitFor();
        }
        assert.ok((await row(one.page, 'slow').textContent()).includes('tester 1'));
        await row(one.page, 'slow').getByRole('link').click();
        await one.page.locator('.story .sent').waitFor();
        await agent.call('release');
        assert.equal((await call).result.content[0].text, 'done');
        await one.page.locator('.story .ended').waitFor();
        await two.page.getByText('No call is running.').waitFor();
        const ended = two.page.locator('tr', { hasText: 'slow' });
        assert.ok((await ended.textContent()).includes('answered'));
        await go(two.page, 'tools');
        await two.page.getByRole('img', { name: 'how long slow took' }).waitFor();
        later(served.stop);
        return [one, two];
    },

    /** A call is cancelled: its server hears of it, its client gets an answer. */
    async cancel(later) {
        const served = await serve(folder());
        const one = await tab(`${served.page}#/now`);
        const agent = await client(served.mcp);
        const call = agent.call('slow');
        await one.page.getByRole('button', { name: 'Cancel: slow' }).click();
        await one.page.getByText('Yes, cancel it').waitFor();
        await until(() => one.page.evaluate(() => document.activeElement.textContent), text => text === 'Yes, cancel it');
        await one.page.keyboard.press('Escape');
        await one.page.getByRole('button', { name: 'Cancel: slow' }).click();
        await one.page.getByText('Yes, cancel it').click();
        const answer = await call;
        assert.ok(answer.error || answer.result?.isError, JSON.stringify(answer));
        await one.page.getByText('No call is running.').waitFor();
        later(served.stop);
        return [one];
    },

    /** A server is started again; what it wrote to stderr is shown as text. */
    async servers(later) {
        const served = await serve(folder());
        const one = await tab(`${served.page}#/servers`);
        const agent = await client(served.mcp);
        await agent.call('quick');
        await one.page.locator('.state', { hasText: 'ready' }).waitFor();
        await one.page.getByText('last lines on stderr').first().click();
        const words = await one.page.locator('pre').first().textContent();
        assert.ok(words.includes('fixture: ready') && !words.includes('\u001b'), words);
        await one.page.getByRole('button', { name: /^Restart/ }).first().click();
        await one.page.getByText('Yes, restart it').click();
        await until(() => one.page.locator('main').textContent(), text => /restarts\s*1/.test(text));
        assert.equal((await agent.call('quick')).result.content[0].text, 'ok');
        later(served.stop);
        return [one];
    },

    /** What waits is approved on one page and gone from the other; the next one is declined by keyboard alone. */
    async decisions(later) {
        const state = folder();
        const served = await serve(state, HELD);
        const [one, two] = [await tab(`${served.page}#/waiting`), await tab(`${served.page}#/waiting`)];
        const agent = await client(served.mcp);
        const first = agent.call('delete_everything', { path: '/tmp/x' });
        await one.page.getByText('Approve', { exact: true }).waitFor();
        await two.page.getByText('Approve', { exact: true }).waitFor();
        await until(() => two.page.title(), title => title.startsWith('(1)'));
        await two.page.getByLabel('Reason').fill('the tests were green');
        await two.page.getByRole('button', { name: 'Approve delete_everything' }).click();
        assert.equal((await first).result.content[0].text, 'deleted');
        for (const { page } of [one, two]) await page.getByText('No call waits for approval.').waitFor();

        const second = agent.call('delete_everything', { path: '/tmp/y' });
        const reason = one.page.getByLabel('Reason');
        await reason.waitFor();
        await one.page.keyboard.press('Tab');
        for (let left = 20; !(await reason.evaluate(field => field === document.activeElement)); left--) {
            assert.ok(left > 0, 'the keyboard does not reach the reason');
            await one.page.keyboard.press('Tab');
        }
        await one.page.keyboard.type('not today');
        for (const key of ['Tab', 'Tab', 'Tab', 'Enter']) await one.page.keyboard.press(key);
        const declined = (await second).result;
        assert.ok(declined.isError && declined.content[0].text.includes('not today'), JSON.stringify(declined));
        for (const { page } of [one, two]) await page.getByText('No call waits for approval.').waitFor();
        const lines = audit(state);
        assert.deepEqual(lines.map(line => [line.yes, line.place, line.reason]), [[true, 'dashboard', 'the tests were green'], [false, 'dashboard', 'not today']]);
        later(served.stop);
        return [one, two];
    },

    /** An approval for a while is shown as long as it is good, and can be taken back. */
    async approvals_that_last(later) {
        const served = await serve(folder(), HELD);
        const one = await tab(`${served.page}#/waiting`);
        const agent = await client(served.mcp);
        const first = agent.call('delete_everything');
        await one.page.getByLabel('Good for').selectOption('minutes');
        await one.page.getByRole('button', { name: /^Approve/ }).click();
        await first;
        assert.equal((await agent.call('delete_everything', { other: 1 })).result.content[0].text, 'deleted');
        await one.page.getByText('approved for 10 minutes').waitFor();
        await one.page.getByRole('button', { name: /^Take back/ }).click();
        await one.page.getByText('Yes, take it back').click();
        await one.page.getByText('Still good').waitFor({ state: 'detached' });
        const again = agent.call('delete_everything', { other: 2 });
        await one.page.getByRole('button', { name: /^Decline/ }).click();
        assert.ok((await again).result.isError);
        later(served.stop);
        return [one];
    },

    /** A task appears and is cancelled. */
    async tasks(later) {
        const served = await serve(folder());
        const one = await tab(`${served.page}#/tasks`);
        const agent = await client(served.mcp);
        const made = await agent.call('slow', {}, { task: { ttl: 600_000 } });
        const { taskId } = made.result.task;
        await row(one.page, 'slow').waitFor();
        assert.ok(!(await one.page.content()).includes(taskId), 'a whole ticket is shown');
        await one.page.getByRole('button', { name: /^Cancel/ }).click();
        await one.page.getByText('Yes, cancel it').click();
        await until(() => agent.ask('tasks/get', { taskId }), answer => answer.result.status === 'cancelled');
        await one.page.locator('.state', { hasText: 'cancelled' }).waitFor();
        later(served.stop);
        return [one];
    },

    /** Real names and arguments that mean harm. */
    async hostile(later) {
        const served = await serve(folder(), ['--hold', 'true']);
        const one = await tab(`${served.page}#/waiting`);
        const name = `<img src=x onerror="document.title='owned'">\u001b[31m\u202Eevil`;
        const agent = await client(served.mcp, { name });
        const call = agent.call('delete_everything', { text: `${name}${'x'.repeat(100_000)}`, nested: { '</script><script>document.title=1': [name] } });
        const pre = one.page.locator('pre').first();
        const text = await pre.textContent();
        assert.ok(text.length < 6000 && text.includes('\\u{202e}') && !/[\u001b\u202e]/.test(text), text.slice(0, 300));
        assert.equal(await one.page.locator('main img, main script').count(), 0);
        assert.ok(!(await one.page.title()).includes('owned'));
        await one.page.getByRole('button', { name: /^Decline/ }).click();
        await call;
        later(served.stop);
        return [one];
    },

    /** Everything that is shown anywhere means harm. */
    async hostile_everywhere(later) {
        const served = await serve(folder());
        const shown = await serveExample(served.page, poisoned);
        const one = await tab(shown.page, { width: 360, height: 740 });
        for (const view of VIEWS) {
            await go(one.page, view);
            await one.page.locator('main').getByText('<script>').first().waitFor({ state: 'attached' }).catch(() => assert.equal(view, 'call/1234.1'));
            const found = await one.page.evaluate(() => ({
                text: document.body.innerText.length, odd: /[\u001b\u202e\u2066\u200b]/.test(document.body.innerText),
                made: document.querySelectorAll('main img, main script').length, wide: document.documentElement.scrollWidth,
            }));
            assert.ok(!found.odd && found.made === 0 && found.text < 60_000 && found.wide <= 360, `${view}: ${JSON.stringify(found)}`);
        }
        assert.ok(!(await one.page.title()).includes('owned'));
        later(shown.stop, served.stop);
        return [one];
    },

    /** The page finds outlast again, and what has happened meanwhile. */
    async restart(later) {
        const state = folder();
        let served = await serve(state, HELD);
        const one = await tab(`${served.page}#/waiting`, { quiet: ['ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED_ENCODING'] });
        await one.page.getByText('live', { exact: true }).waitFor();
        const { address } = served;
        await served.stop();
        await one.page.getByText('connection lost').waitFor();
        served = await serve(state, HELD, address);
        await one.page.getByText('live', { exact: true }).waitFor();
        const agent = await client(served.mcp);
        const call = agent.call('delete_everything');
        await one.page.getByRole('button', { name: /^Approve/ }).click();
        assert.equal((await call).result.content[0].text, 'deleted');
        later(served.stop);
        return [one];
    },

    /** With tokens the page asks for one, keeps it in its tab, and shows what is its own. */
    async tokens(later) {
        const made = name => {
            const [line, told] = [[], []];
            const output = execFileSync('sh', ['-c', `"${OUTLAST}" token new ${name} 2>&1`], { encoding: 'utf8' });
            for (const text of output.trim().split('\n')) (text.startsWith('outlast:') ? told : line).push(text);
            return { hash: line[0].split(' ')[1], token: told[0].split(' ').pop() };
        };
        const [ana, ben] = [made('ana'), made('ben')];
        const served = await serveFile(folder(), `[defaults]\nhold = true\n[tokens.ana]\nhash = "${ana.hash}"\ndashboard = "decide"\n[tokens.ben]\nhash = "${ben.hash}"`);
        const one = await tab(`${served.page}#/waiting`, { quiet: ['401'] });
        await one.page.getByLabel('Token').fill('outlast_wrong');
        await one.page.getByRole('button', { name: 'Show' }).click();
        await one.page.getByText('This token is not known here.').waitFor();
        await one.page.getByLabel('Token').fill(ana.token);
        await one.page.getByRole('button', { name: 'Show' }).click();
        await one.page.getByText('You see the calls of').waitFor();
        const [of_ana, of_ben] = [await client(served.mcp, { token: ana.token }), await client(served.mcp, { token: ben.token })];
        const calls = [of_ben.call('quick', { whose: 'ben' }), of_ana.call('quick', { whose: 'ana' })];
        await one.page.getByRole('button', { name: /^Approve/ }).waitFor();
        assert.equal(await one.page.locator('.hold').count(), 1);
        assert.ok((await one.page.locator('pre').textContent()).includes('"ana"'));
        await one.page.reload();
        await one.page.getByRole('button', { name: /^Approve/ }).click();
        await calls[1];
        await one.page.getByRole('button', { name: 'Forget the token' }).click();
        await one.page.getByLabel('Token').waitFor();
        later(served.stop);
        return [one];
    },

    /** `outlast ui` shows what clients on standard streams do. */
    async wrap_mode(later) {
        const state = folder();
        const agent = wrap(state, HELD);
        await agent.open();
        const looked = await ui(state);
        const one = await tab(looked.page);
        assert.ok(!one.page.url().includes('token'), 'the token stays in the address');
        await go(one.page, 'waiting');
        const call = agent.call('delete_everything', { path: '/tmp/x' });
        await one.page.getByRole('button', { name: /^Approve/ }).click();
        assert.equal((await call).result.content[0].text, 'deleted');
        const slow = agent.call('slow');
        await go(one.page, 'now');
        // Its process shows what happened to it.
        await row(one.page, 'slow').getByRole('link', { name: 'slow' }).click();
        await one.page.locator('.story .began').waitFor();
        await go(one.page, 'now');
        await one.page.getByRole('button', { name: /^Cancel: slow/ }).click();
        await one.page.getByText('Yes, cancel it').click();
        const answer = await slow;
        assert.ok(answer.error || answer.result?.isError, JSON.stringify(answer));
        agent.end();
        later(looked.stop);
        return [one];
    },

    /** Every view, light and dark, wide and on a phone: nothing for a checker of accessibility to find. */
    async accessibility(later) {
        const served = await serve(folder());
        const shown = await serveExample(served.page, example);
        const tabs = [];
        for (const [scheme, width] of [['light', 1000], ['dark', 1000], ['light', 360], ['dark', 360]]) {
            const one = await tab(shown.page, { scheme, width, height: 780 });
            tabs.push(one);
            await one.page.evaluate(AXE);
            for (const view of VIEWS) {
                await go(one.page, view);
                await one.page.locator('main .row, main .story').first().waitFor();
                const { violations } = await one.page.evaluate(() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
                const found = violations.map(each => `${each.id}: ${each.nodes.map(node => node.html).join(' ')}`);
                assert.deepEqual(found, [], `${view}, ${scheme}, ${width}`);
                const wide = await one.page.evaluate(() => document.documentElement.scrollWidth);
                assert.ok(wide <= width, `${view} is ${wide} wide`);
                await shot(one.page, `${view.split('/')[0]}-${scheme}${width < 500 ? '-phone' : ''}`);
            }
        }
        later(shown.stop, served.stop);
        return tabs;
    },

    /** Numbers and letters that come in by the stream replace what was there; nothing grows. */
    async thousands(later) {
        const served = await serve(folder());
        const many = now => ({ ...example(now), calls: Array.from({ length: 1000 }, (_, no) => ({ ...example(now).calls[0], id: `1.${no}`, tool: `tool_${no}` })), more: 12 });
        const shown = await serveExample(served.page, many);
        const one = await tab(shown.page);
        await one.page.getByText('Show 100 more of 900').waitFor();
        assert.equal(await one.page.locator('.calls .row').count(), 100);
        await one.page.getByLabel('Filter calls', { exact: true }).fill('tool_777');
        await until(() => one.page.locator('.calls .row').count(), count => count === 1);
        const now = Date.now();
        shown.tell('change', { now, gone: ['1.777'], calls: [{ ...example(now).calls[0], id: '1.1000', tool: 'tool_7777' }] });
        await one.page.getByText('tool_7777').waitFor();
        assert.equal(await one.page.locator('.calls .row').count(), 1);
        later(shown.stop, served.stop);
        return [one];
    },
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter(name => !checks[name]);
assert.deepEqual(unknown, [], `there are: ${Object.keys(checks).join(', ')}`);
let failed = 0;
for (const [name, check] of Object.entries(checks)) {
    if (wanted.length && !wanted.includes(name)) continue;
    const after = [];
    try {
        const tabs = await check((...more) => after.push(...more));
        for (const { wrong, close } of tabs) {
            assert.deepEqual(wrong, [], 'the browser complains');
            await close();
        }
        console.log(`ok    ${name}`);
    } catch (error) {
        failed++;
        console.log(`FAIL  ${name}: ${error.stack}`);
    }
    for (const stop of after) await stop();
}
await end();
console.log(`${Object.keys(checks).length} checks, ${failed} failed`);
process.exit(failed ? 1 : 0);
