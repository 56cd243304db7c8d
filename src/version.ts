/**
 * Which Wirewatch this is: shown by `--version`, by health, and written into backups.
 *
 * The bundler puts the values in as constants. Run straight from the sources, the version comes from package.json, and
 * the others are not known.
 */
import packageFile from '../package.json' with { type: 'json' };

declare const WIREWATCH_VERSION: string | undefined;
declare const WIREWATCH_COMMIT: string | undefined;
declare const WIREWATCH_SQLITE: string | undefined;

/** Semantic version, as in package.json. */
export const VERSION: string =
  typeof WIREWATCH_VERSION === 'string' ? WIREWATCH_VERSION : packageFile.version;

/** Twelve hex digits, with `-dirty` behind them when built from changed sources; `unknown` without git. */
export const COMMIT: string = typeof WIREWATCH_COMMIT === 'string' ? WIREWATCH_COMMIT : 'unknown';

/** Of better-sqlite3's addon, so that nothing has to be loaded to tell; `unknown` from the sources. */
export const SQLITE: string = typeof WIREWATCH_SQLITE === 'string' ? WIREWATCH_SQLITE : 'unknown';
