// What servers and clients said, as text that cannot hide or turn anything; and times in words.

/** Characters that nobody sees, that turn the direction of writing or that steer a terminal. */
const ODD =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const ODD_IN_LINES = new RegExp(ODD.source.replace('\\u0000-\\u001f', '\\u0000-\\u0008\\u000b-\\u001f'), 'gu');

const shown = char => `\\u{${char.codePointAt(0).toString(16)}}`;

/** The first `most` characters of what somebody said; what is odd in them is made visible. */
export function plain(text, most = 200, lines = false) {
    const whole = String(text ?? '');
    const cut = whole.length > most ? whole.slice(0, most).replace(/[\ud800-\udbff]$/, '') : whole;
    return cut.replace(lines ? ODD_IN_LINES : ODD, shown) + (cut.length < whole.length ? '…' : '');
}

/** A time in its two largest units: `3 min 12 s`. */
export function duration(ms) {
    if (ms == null) return 'none';
    if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
    if (ms < 10_000 && ms % 1000) return `${(ms / 1000).toFixed(1)} s`;
    return whole(ms);
}

/** The same in whole seconds, for what moves. */
export function whole(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    const units = [[86_400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
    const first = units.findIndex(([size]) => seconds >= size);
    if (first < 0) return '0 s';
    const [size, name] = units[first];
    const [smaller, its] = units[first + 1] ?? [];
    const rest = smaller ? Math.floor((seconds % size) / smaller) : 0;
    return `${Math.floor(seconds / size)} ${name}` + (rest ? ` ${rest} ${its}` : '');
}

/** A moment on the clock of whoever reads. */
export function clock(ms) {
    return new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

export const counted = (count, name) => `${count.toLocaleString()} ${name}${count === 1 ? '' : 's'}`;
