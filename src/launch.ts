/**
 * The entry point of `node dist/main.cjs` and of each of its threads: refuses a Node that cannot run the program, turns
 * on Node's compile cache, and loads the program (src/main.ts, bundled as program.cjs) or the thread (src/worker.ts).
 *
 * A separate file, in syntax that older versions of Node can read: SQLite's addon would crash them with a segmentation
 * fault and no message. The executable contains its own Node, and does not need this.
 */
import { existsSync } from 'node:fs';
import nodeModule from 'node:module';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { pasted } from './setup/shell.ts';

const NODE_MAJOR_MIN = 24;
/** A wrong installation; cli/program.ts has the same code. */
const EXIT_CONFIGURATION = 78;

const version = process.versions.node;
if (Number(version.split('.')[0]) < NODE_MAJOR_MIN) {
  process.stderr.write(
    `wirewatch: this is Node ${version}, but Wirewatch needs Node ${NODE_MAJOR_MIN} or newer. ${advice()}\n`,
  );
  process.exitCode = EXIT_CONFIGURATION;
} else {
  // Beside the bundle, and renewed when the bundle changes; if the folder is not writable, every start compiles.
  nodeModule.enableCompileCache(join(import.meta.dirname, 'compiled'));
  nodeModule.createRequire(import.meta.url)(isMainThread ? './program.cjs' : './worker.cjs');
}

/** The same command on the Node that `npm` installed for the program. */
function advice(): string {
  const root = join(import.meta.dirname, '..');
  const [, script = '', ...args] = process.argv;
  const node = join(root, 'node_modules', '.bin', 'node');
  const command = existsSync(node)
    ? [node, script, ...args]
    : ['npm', '--prefix', root, 'run', 'wirewatch', '--', ...args];
  return `Run it with:\n  ${command.map(pasted).join(' ')}`;
}
