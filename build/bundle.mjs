/**
 * Bundles the program: src/main.ts and src/worker.ts with their dependencies, into one CommonJS file each.
 *
 * Run on the pinned Node (build/setup.cjs does), it writes dist/program.cjs and dist/worker.cjs, which load
 * better-sqlite3 from node_modules, and dist/main.cjs, which starts them (src/launch.ts); beside them the console's
 * files in dist/console.json, the manual in dist/manual.json, and the sample files in dist/config.json. The executable
 * (build/executable.mjs) uses the same function with `packed`, where better-sqlite3's JavaScript is inside and its
 * addon is handed over as an object (src/store/addon.ts).
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { build } from 'esbuild';
import { bundleConsole } from './console.mjs';
import { licensesOf, packagesInside, refuseHidden } from './licenses.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Packages whose main file has those they depend on inside: bundled from their own files instead, so that the list of
 * what is inside names each with the version that is there.
 */
const OWN_FILES = {
  tldts: './node_modules/tldts/dist/es6/index.js',
};

const IMPORT_META = {
  'import.meta.url': 'importMetaUrl',
  'import.meta.dirname': '__dirname',
  'import.meta.filename': '__filename',
};

/**
 * @param {object} options
 * @param {string} options.folder where the files are written
 * @param {boolean} options.packed for the executable: nothing is left to be found in node_modules
 * @param {string} [options.nodeLicense] the licence of the Node that is packed with it
 * @returns {Promise<string[]>} the packages inside, as package-lock.json names their places
 */
export async function bundle({ folder, packed, nodeLicense }) {
  const shared = {
    absWorkingDir: root,
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    legalComments: 'none',
    // The directive must stay first; what the bundler puts behind a banner is none any more.
    banner: {
      js: "'use strict';\nconst importMetaUrl = require('node:url').pathToFileURL(__filename).href;",
    },
    // Dropping what the constants decide keeps package.json out of the bundle.
    minifySyntax: true,
    // Every start reads the file: a fifth of it was layout.
    minifyWhitespace: true,
    metafile: true,
    write: false,
    logLevel: 'warning',
  };
  const result = await build({
    ...shared,
    entryPoints: { [packed ? 'main' : 'program']: 'src/main.ts', worker: 'src/worker.ts' },
    target: 'node24',
    // Becomes require(): started from a code cache, as the executable is, import() does not work.
    supported: { 'dynamic-import': false },
    // A map beside the file costs nothing until it is asked for (node --enable-source-maps); an inline one
    // costs every start time and memory.
    sourcemap: packed ? false : 'linked',
    sourcesContent: false,
    define: {
      ...IMPORT_META,
      WIREWATCH_BUNDLED: 'true',
      WIREWATCH_VERSION: JSON.stringify(version()),
      WIREWATCH_COMMIT: JSON.stringify(commit()),
      WIREWATCH_SQLITE: JSON.stringify(sqliteVersion()),
    },
    alias: OWN_FILES,
    external: packed ? [] : ['better-sqlite3'],
    plugins: packed ? [addonHandedOver] : [],
  });
  const launcher = packed
    ? { outputFiles: [] }
    : await build({
        ...shared,
        entryPoints: { main: 'src/launch.ts' },
        target: 'node18',
        define: IMPORT_META,
      });
  mkdirSync(folder, { recursive: true });
  for (const { path, text } of [...result.outputFiles, ...launcher.outputFiles])
    replaceFile(join(folder, basename(path)), path.endsWith('.cjs') ? inAscii(text) : text);
  const { files, inputs: consoleInputs } = await bundleConsole(root);
  replaceFile(join(folder, 'console.json'), JSON.stringify(files));
  for (const texts of ['src/manual', 'config'])
    replaceFile(join(folder, `${basename(texts)}.json`), JSON.stringify(textsIn(texts)));
  const inputs = [...Object.keys(result.metafile.inputs), ...consoleInputs];
  refuseHidden(root, inputs);
  const packages = packagesInside(inputs);
  const licenses = licensesOf(root, packages, sqliteVersion(), nodeLicense);
  replaceFile(join(folder, 'licenses.json'), JSON.stringify(licenses, null, 2));
  return packages;
}

/**
 * A script without any other character: V8 then keeps it in half the memory and has it read in half the time. The bundler
 * escapes strings, and leaves comments and templates as they are.
 */
function inAscii(script) {
  return script.replaceAll(
    /[^\0-\x7f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** better-sqlite3 looks for its addon in folders that the executable does not have; there it takes ours or fails. */
const addonHandedOver = {
  name: 'addon-handed-over',
  setup(builder) {
    builder.onLoad({ filter: /[\\/]better-sqlite3[\\/]lib[\\/]binding\.js$/ }, () => ({
      loader: 'js',
      contents: `exports.getBinding = (addon) => {
        if (typeof addon === 'object' && addon !== null) return addon;
        throw new TypeError('The executable opens a database only with { nativeBinding: nativeBinding() }');
      };`,
    }));
  },
};

/** The texts that src/packed.ts gives, by name. */
function textsIn(of) {
  const folder = join(root, of);
  const names = readdirSync(folder).filter((name) => !/\.(ts|png|svg)$/.test(name));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

/** Whole or not at all, and only when it differs: another npm script may be starting from the same file. */
function replaceFile(path, contents) {
  const bytes = Buffer.from(contents);
  if (existsSync(path) && readFileSync(path).equals(bytes)) return;
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(temporary, bytes);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

export function version() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
}

/** Asked of better-sqlite3's addon: every platform's comes from the same sources. */
export function sqliteVersion() {
  const database = new Database(':memory:');
  try {
    return database.prepare('SELECT sqlite_version()').pluck().get();
  } finally {
    database.close();
  }
}

/** Only this folder's own repository is asked: unpacked inside another one, its commit would say nothing. */
export function commit() {
  if (!existsSync(join(root, '.git'))) return 'unknown';
  const options = ['--no-optional-locks', 'describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'];
  try {
    return execFileSync('git', options, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown'; // no git here, or no commit yet
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await bundle({ folder: join(root, 'dist'), packed: false });
  } catch (error) {
    // What is wrong in a source file the bundler has already printed, with the line.
    if (!(error instanceof Error && 'errors' in error)) throw error;
    process.exitCode = 1;
  }
}
