/**
 * What a bundle contains, and the licence of each part, as `wirewatch licenses` prints them.
 *
 * The list comes from the bundler's own account of its inputs, so nothing can be inside and not be named.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * In the program, though no JavaScript of theirs is: better-sqlite3's addon is loaded by the bundle and packed into
 * the executable, and node-addon-api's headers are compiled into it.
 */
const ALWAYS_INSIDE = ['node_modules/better-sqlite3', 'node_modules/node-addon-api'];

/** https://sqlite.org/copyright.html, and the notice at the head of its sources. */
const SQLITE = `All of the code and documentation in SQLite has been dedicated to the public domain by the authors.

The author disclaims copyright to this source code. In place of a legal notice, here is a blessing:

   May you do good and not evil.
   May you find forgiveness for yourself and forgive others.
   May you share freely, never taking more than you give.`;

/**
 * The packages that bundled files come from.
 *
 * @param {string[]} inputs bundled files, relative to the project's folder
 * @returns {string[]} places such as `node_modules/pino`, as package-lock.json has them, sorted
 */
export function packagesInside(inputs) {
  const places = new Set(ALWAYS_INSIDE);
  for (const input of inputs) {
    const place = placeOf(input);
    if (place !== undefined) places.add(place.replaceAll('\\', '/'));
  }
  return [...places].sort();
}

/**
 * Some packages come with others inside one file, which the bundler cannot tell: their source maps do.
 *
 * @param {string} root the project's folder
 * @param {string[]} inputs bundled files, relative to it
 * @throws when a file has code of another package inside
 */
export function refuseHidden(root, inputs) {
  for (const input of inputs) {
    const map = join(root, `${input}.map`);
    if (!input.includes('node_modules') || !existsSync(map)) continue;
    const own = placeOf(join(root, input));
    const { sources = [], sourceRoot = '' } = JSON.parse(readFileSync(map, 'utf8'));
    for (const source of sources) {
      const place = placeOf(join(dirname(map), sourceRoot, source));
      // Some maps name their own sources by paths that lead nowhere.
      const isPackage = place !== undefined && existsSync(join(place, 'package.json'));
      if (place === own || !(isPackage || source.includes('node_modules'))) continue;
      throw new Error(
        `${input} contains code of another package (${source}), which the list of bundled packages would not name. Bundle the package from its own files (OWN_FILES in build/bundle.mjs).`,
      );
    }
  }
}

/** The folder of the package that a file belongs to; undefined for one of the project. */
function placeOf(path) {
  const [place] = /^.*node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(path) ?? [];
  return place;
}

/**
 * @param {string} root the project's folder
 * @param {string[]} places of {@link packagesInside}
 * @param {string} sqlite version
 * @param {string} [nodeLicense] the file with Node's licence, where Node is inside
 * @returns {{ name: string, version: string, license: string, text: string }[]} the project first
 */
export function licensesOf(root, places, sqlite, nodeLicense) {
  const licenses = ['', ...places].map((place) => packageLicense(join(root, place)));
  licenses.push({ name: 'SQLite', version: sqlite, license: 'public domain', text: SQLITE });
  if (nodeLicense !== undefined) {
    const text = readFileSync(nodeLicense, 'utf8').trim();
    licenses.push({ name: 'Node.js', version: process.versions.node, license: 'MIT and others', text });
  }
  return licenses;
}

function packageLicense(folder) {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((entry) => /^(licen[sc]e|copying|notice)(\.|$)/i.test(entry));
  if (files.length > 0) {
    const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim());
    return { name, version, license, text: texts.join('\n\n') };
  }
  // Some carry no text, and only say which one they mean and whose they are.
  const holder = typeof author === 'string' ? author.replace(/ *[<(].*/, '') : author?.name;
  if (license !== 'MIT' || !holder) {
    throw new Error(
      `${name} ${version} has no licence text (${license}): it must not be distributed without one.`,
    );
  }
  return { name, version, license, text: mitText(holder) };
}

function mitText(holder) {
  return `The MIT License (MIT)

Copyright (c) ${holder}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
}
