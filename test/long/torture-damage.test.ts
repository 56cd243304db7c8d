/** A small share of the torture's part `damage`: every kind of damage on every target. */
import { tortureTest } from '../support/torture-test.ts';
import { damage } from '../torture/damage.ts';

const OF_DATABASES = ['bit', 'block', 'page', 'torn end', 'lost'];
const OF_LOGS = [...OF_DATABASES, 'doubled', 'swapped'];
const LOGS = ['log beside its database', 'log without a database', 'log, compared', 'copy'];
const DATABASES = ['detections.db', 'access.db and its spare copy'];

tortureTest(damage, {
  seed: 1,
  share: 0.1,
  fired: [
    ...OF_LOGS.flatMap((kind) => LOGS.map((target) => `${target}, ${kind}`)),
    ...OF_DATABASES.flatMap((kind) => DATABASES.map((target) => `${target}, ${kind}`)),
    'log beside its database: refused',
    'log beside its database: as it was',
    'log without a database: refused',
    'log, compared: told',
    'detections.db: told',
    'detections.db: as it was',
    'access.db and its spare copy: as it was',
    'copy: refused',
    'change stream: refused',
  ],
});
