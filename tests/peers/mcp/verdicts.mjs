// usage: node verdicts.mjs DIR
//
// Prints the scenarios of a run of the conformance suite that have passed: none of their checks has failed or warns, and
// one at least says more than that what was sent is well-formed, which it is where nothing was sent.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const folder = process.argv[2];
for (const name of readdirSync(folder).sort()) {
  const scenario = name.match(/^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/)?.[1];
  // A scenario that could not even begin leaves an empty folder.
  if (!scenario || !existsSync(`${folder}/${name}/checks.json`)) continue;
  const checks = JSON.parse(readFileSync(`${folder}/${name}/checks.json`, 'utf8'));
  const bad = checks.some(({ status }) => status === 'FAILURE' || status === 'WARNING');
  const good = checks.some(({ id, status }) => status === 'SUCCESS' && id !== 'wire-schema-valid');
  if (good && !bad) console.log(scenario);
}
