-- A node whose heartbeats have a gap is not steady. The gap is shorter than the time after which a node is late.

CREATE FUNCTION cluster_steady_gap_ms() RETURNS BIGINT LANGUAGE sql IMMUTABLE AS 'SELECT 1000::BIGINT';

-- As before, but the time in which a node is steady begins again after a gap, not only if the node was late.
CREATE OR REPLACE FUNCTION cluster_heartbeat(_node INTEGER, _run BIGINT, _load BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_node SET run = _run, heartbeat_ms = cluster_now_ms(_at_ms), is_dead = FALSE, load = _load,
        steady_since_ms = CASE WHEN run = _run AND cluster_now_ms(_at_ms) - heartbeat_ms <= cluster_steady_gap_ms() THEN steady_since_ms
            ELSE cluster_now_ms(_at_ms) END
        WHERE node = _node AND (run < _run OR (run = _run AND NOT is_dead));
    IF FOUND THEN
        RETURN 0;
    END IF;
    PERFORM FROM cluster_node WHERE node = _node AND run > _run;
    RETURN CASE WHEN FOUND THEN 6 ELSE 4 END;
END $$;
COMMENT ON COLUMN cluster_node.steady_since_ms IS 'start of the time in which its heartbeats have no gap, Unix time of the server';
