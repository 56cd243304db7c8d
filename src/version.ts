/**
 * Version and build of this program.
 *
 * The bundler defines the constants. From the sources, the version comes from package.json, and the others are unknown.
 */
import packageFile from '../package.json' with { type: 'json' };

declare const WIREWATCH_VERSION: string | undefined;
declare const WIREWATCH_COMMIT: string | undefined;
declare const WIREWATCH_SQLITE: string | undefined;

/** Semantic version, as in package.json. */
export const VERSION: string =
  typeof WIREWATCH_VERSION === 'string' ? WIREWATCH_VERSION : packageFile.version;

/** Twelve hex digits, then `-dirty` if built from modified sources; `unknown` without git. */
export const COMMIT: string = typeof WIREWATCH_COMMIT === 'string' ? WIREWATCH_COMMIT : 'unknown';

/** The version of SQLite in the addon, without loading it; `unknown` from the sources. */
export const SQLITE: string = typeof WIREWATCH_SQLITE === 'string' ? WIREWATCH_SQLITE : 'unknown';
