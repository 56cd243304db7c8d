/**
 * Collects the licences of what a bundle contains, into the text that `wirewatch licenses` prints.
 *
 * The list comes from the bundler's own account of its inputs, so nothing can be inside and not be named.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param {string} root the project's folder
 * @param {string[]} inputs the bundled files, relative to `root`
 * @param {boolean} packed the executable: Node.js and the addon are inside as well
 */
export function licenseText(root, inputs, packed) {
  const folders = new Set(['.']);
  for (const input of inputs) {
    const found = /^.*node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(input);
    if (found) folders.add(found[0].replaceAll('\\', '/'));
  }
  // Bundled or not, this one always runs with the program; SQLite itself is inside its addon.
  folders.add('node_modules/better-sqlite3');
  const parts = [...folders].sort().map((folder) => packagePart(join(root, folder)));
  parts.push('SQLite\nLicense: public domain (https://sqlite.org/copyright.html)');
  if (packed) parts.push(nodePart());
  return `${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

function packagePart(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const text = licenseFile(folder);
  return `${name} ${version}\nLicense: ${license ?? 'see below'}${text === undefined ? '' : `\n\n${text}`}`;
}

function nodePart() {
  const text = licenseFile(join(process.execPath, '..', '..'));
  if (text === undefined)
    throw new Error(`No LICENSE beside ${process.execPath}: the executable must carry it.`);
  return `Node.js ${process.versions.node}\nLicense: MIT and others\n\n${text}`;
}

function licenseFile(folder) {
  const name =
    existsSync(folder) && readdirSync(folder).find((entry) => /^(licen[sc]e|copying)(\.|$)/i.test(entry));
  return name ? readFileSync(join(folder, name), 'utf8').trim() : undefined;
}
