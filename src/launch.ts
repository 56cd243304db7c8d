/**
 * What `node dist/main.cjs` runs first, and each of its threads: refuses a Node that cannot run the program, has Node
 * keep what it compiles, and loads the program (src/main.ts, bundled as program.cjs) or the thread (src/worker.ts).
 *
 * A file of its own, in syntax that older Nodes read: SQLite's addon ends them with a segmentation fault and not a
 * word. The executable brings its Node, and does not need it.
 */
import { existsSync } from 'node:fs';
import nodeModule from 'node:module';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { pasted } from './setup/shell.ts';

const NODE_MAJOR_MIN = 24;
/** As cli/program.ts has it: a wrong installation. */
const EXIT_CONFIGURATION = 78;

const version = process.versions.node;
if (Number(version.split('.')[0]) < NODE_MAJOR_MIN) {
  process.stderr.write(
    `wirewatch: this is Node ${version}, but it needs Node ${NODE_MAJOR_MIN}. ${advice()}\n`,
  );
  process.exitCode = EXIT_CONFIGURATION;
} else {
  // Beside the bundle, and made anew when it changes; where that cannot be written, every start compiles.
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
  return `Run it as:\n  ${command.map(pasted).join(' ')}`;
}
