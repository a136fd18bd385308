// Tables of a Postgres as text, and text as tables: a plain dump as `pg_dump` writes it, and its restore without `psql`, which a machine that
// runs tests need not have.
import pg from "pg";

/** The tables of a schema as they are at one moment, while others write them. */
export async function dumpSchema(url: string, schema: string): Promise<string> {
  return withConnection(url, async (client) => {
    const ask = async (text: string): Promise<string[]> => {
      const { rows } = await client.query<string[]>({ text, rowMode: "array" });
      return rows.map(([value]) => String(value));
    };
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const parts = [`CREATE SCHEMA ${schema};\n`];
    for (const table of await ask(`SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'`)) {
      const name = `${schema}.${table}`;
      const attributes = `FROM pg_attribute WHERE attrelid = '${name}'::regclass AND attnum > 0`;
      const columns = await ask(`SELECT attname ${attributes} ORDER BY attnum`);
      const types = await ask(
        `SELECT attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END ${attributes} ORDER BY attnum`,
      );
      const limits = await ask(
        `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '${name}'::regclass AND contype IN ('p', 'c')`,
      );
      const [options] = await ask(
        `SELECT coalesce('WITH (' || array_to_string(reloptions, ', ') || ')', '') FROM pg_class WHERE oid = '${name}'::regclass`,
      );
      const text = columns.map((column) => `replace(${column}::text, '\\', '\\\\')`).join(` || chr(9) || `);
      const rows = await ask(`SELECT ${text} FROM ${name}`);
      parts.push(
        `CREATE TABLE ${name} (${[...types, ...limits].join(", ")}) ${String(options)};\n`,
        `COPY ${name} (${columns.join(", ")}) FROM stdin;\n`,
        ...rows.map((row) => `${row}\n`),
        "\\.\n",
      );
    }
    return parts.join("");
  });
}

/** Makes what a dump has of one schema, all of it or nothing. */
export async function restoreDump(url: string, dump: string): Promise<void> {
  await withConnection(url, async (client) => {
    await client.query("BEGIN");
    // `pg_dump` empties the path for the session that restores.
    let statements = "";
    let copied: { readonly insert: string; readonly rows: string[] } | undefined;
    for (const line of dump.split("\n")) {
      const [, table, columns] = /^COPY (\S+) (\(.*\)) FROM stdin;$/.exec(line) ?? [];
      if (table !== undefined) {
        await client.query(statements);
        statements = "";
        copied = { insert: `INSERT INTO ${table} ${String(columns)} VALUES `, rows: [] };
      } else if (copied === undefined) {
        // Words to `psql` itself begin with a backslash.
        if (!line.startsWith("\\")) statements += `${line}\n`;
      } else if (line === "\\.") {
        if (copied.rows.length > 0) await client.query(copied.insert + copied.rows.join());
        copied = undefined;
      } else {
        const values = line
          .split("\t")
          .map((value) => `'${value.replaceAll("\\\\", "\\").replaceAll("'", "''")}'`);
        copied.rows.push(`(${values.join()})`);
      }
    }
    await client.query(statements);
    await client.query("COMMIT");
  });
}

async function withConnection<Result>(
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
