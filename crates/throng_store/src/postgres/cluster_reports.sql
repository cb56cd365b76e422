-- What nodes report about themselves for operators, once per second. As in `cluster.sql`, each transaction is one function, which the crate
-- `throng_cluster` calls and documents (`ReportRequest`). A node has one row, so a write never waits for another node.
CREATE TABLE cluster_report (
    node INTEGER PRIMARY KEY,
    run BIGINT NOT NULL,
    reported_ms BIGINT NOT NULL,
    scenes TEXT[] NOT NULL,
    players BIGINT[] NOT NULL,
    gateways TEXT[] NOT NULL,
    connected BIGINT[] NOT NULL,
    routed BIGINT[] NOT NULL
);
COMMENT ON COLUMN cluster_report.run IS 'the run that sent it; if it is dead, late, or not the newest of the node, the report does not count';
COMMENT ON COLUMN cluster_report.reported_ms IS 'Unix time of the server';
COMMENT ON COLUMN cluster_report.players IS 'the numbers of players in the scenes, in the order of `scenes`';
COMMENT ON COLUMN cluster_report.connected IS 'the numbers of clients of the gateways, in the order of `gateways`';
COMMENT ON COLUMN cluster_report.routed IS 'how many of them are routed to the node';

CREATE FUNCTION cluster_write_report(_node INTEGER, _run BIGINT, _scenes TEXT[], _players BIGINT[], _gateways TEXT[], _connected BIGINT[],
    _routed BIGINT[], _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 4;
    END IF;
    INSERT INTO cluster_report AS own (node, run, reported_ms, scenes, players, gateways, connected, routed)
        VALUES (_node, _run, cluster_now_ms(_at_ms), _scenes, _players, _gateways, _connected, _routed)
        ON CONFLICT (node) DO UPDATE SET run = excluded.run, reported_ms = excluded.reported_ms, scenes = excluded.scenes,
            players = excluded.players, gateways = excluded.gateways, connected = excluded.connected, routed = excluded.routed
            -- The next run may have begun meanwhile.
            WHERE own.run <= excluded.run;
    RETURN 0;
END $$;

-- The reports that count: those of living runs, `_old_after_ms` old at most.
CREATE FUNCTION cluster_read_reports(_old_after_ms BIGINT, _at_ms BIGINT)
    RETURNS TABLE (_name TEXT, _node INTEGER, _run BIGINT, _scenes TEXT[], _players BIGINT[], _gateways TEXT[], _connected BIGINT[],
        _routed BIGINT[]) LANGUAGE sql STABLE AS
    'SELECT n.name, r.node, r.run, r.scenes, r.players, r.gateways, r.connected, r.routed
        FROM cluster_report r JOIN cluster_node n ON n.node = r.node
        WHERE cluster_is_alive(r.node, r.run, _at_ms) AND cluster_now_ms(_at_ms) - r.reported_ms <= _old_after_ms ORDER BY r.node';
