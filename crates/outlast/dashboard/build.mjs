// Makes the page: one file with its script and its style inside. `node build.mjs FILE` writes it; the same sources and
// the same lock file give the same bytes.

import { build } from 'esbuild';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [target] = process.argv.slice(2);
const sources = join(dirname(fileURLToPath(import.meta.url)), 'src');

async function bundle(entry) {
    const { outputFiles } = await build({
        entryPoints: [join(sources, entry)],
        bundle: true,
        minify: true,
        write: false,
        target: ['chrome110', 'firefox115', 'safari16.4'],
        jsx: 'automatic',
        jsxImportSource: 'preact',
        charset: 'ascii',
        legalComments: 'none',
    });
    return outputFiles[0].text.trim();
}

const [page, script, style] =
    await Promise.all([readFile(join(sources, 'page.html'), 'utf8'), bundle('main.jsx'), bundle('style.css')]);
// In a page a script ends at the first `</script`, whatever it means there.
if (/<\/(script|style)/i.test(script + style)) throw new Error('the bundle would end its own element');
const parts = { script, style };
await writeFile(target, page.replace(/\{\{(script|style)\}\}/g, (_, name) => parts[name]));
